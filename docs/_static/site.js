// A chart that is wider than its place begins with its middle.
addEventListener("load", () => {
  for (const chart of document.querySelectorAll(".chart")) {
    chart.scrollLeft = (chart.scrollWidth - chart.clientWidth) / 2;
  }
});
