// A chart that is wider than its place begins with its middle; a picture that would be too small on a phone scrolls.
addEventListener("load", () => {
  for (const chart of document.querySelectorAll(".chart")) {
    chart.scrollLeft = (chart.scrollWidth - chart.clientWidth) / 2;
  }
  for (const picture of document.querySelectorAll(".bd-article p > img:only-child, .bd-article img.sphx-glr-single-img")) {
    if (picture.naturalWidth > 600 && !picture.closest(".front")) {
      const box = document.createElement("div");
      box.className = "wide";
      picture.replaceWith(box);
      box.append(picture);
    }
  }
});
