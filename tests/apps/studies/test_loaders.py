"""Text collections and recordings from every format, stand-ins, and damaged files."""

import builtins

import numpy as np
import pytest
import scipy.io
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from tests.support.failing import fails

from skpursuit.apps.studies.loaders import find_audio, find_text, load_audio, load_text, make_music, make_text
from skpursuit.apps.tables import TableError

COUNTS = np.array([[2, 0, 1, 0], [0, 3, 0, 0], [1, 0, 0, 5]])


def cluto(folder, labels="news\nsport\nnews\n", name="c.mat.rclass", text="3 4 5\n1 2 3 1\n2 3\n1 1 4 5\n"):
    (folder / "c.mat").write_text(text)
    (folder / name).write_text(labels)
    return folder / "c.mat"


def matlab(folder, **changes):
    content = {"dtm": csr_array(COUNTS).astype(float), "classid": np.array([[1], [2], [1]]), **changes}
    scipy.io.savemat(folder / "m.mat", {k: v for k, v in content.items() if v is not None})
    return folder / "m.mat"


def svmlight(folder):
    (folder / "s.svm").write_text("1 1:2 3:1\n2 2:3\n1 1:1 4:5\n")
    return folder / "s.svm"


@pytest.mark.parametrize("make", [cluto, matlab, svmlight])
def test_every_format_gives_the_same_collection(tmp_path, make):
    collection = load_text(make(tmp_path))
    assert isinstance(collection.X, csr_array)
    np.testing.assert_array_equal(collection.X.toarray(), COUNTS)
    np.testing.assert_array_equal(collection.y, [0, 1, 0])
    assert collection.classes in (("1", "2"), ("news", "sport"))


def test_the_other_name_of_the_labels_and_an_empty_document(tmp_path):
    path = cluto(tmp_path, name="c.rclass", text="3 4 3\n1 2 3 1\n\n4 5\n")
    np.testing.assert_array_equal(load_text(path).X.toarray(), [[2, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 5]])


def test_matlab_words_by_documents_are_turned(tmp_path):
    path = matlab(tmp_path, dtm=csr_array(COUNTS.T).astype(float))
    np.testing.assert_array_equal(load_text(path).X.toarray(), COUNTS)


def test_numeric_classes_are_in_numeric_order(tmp_path):
    (tmp_path / "s.svm").write_text("10 1:1\n9 1:1\n")
    assert load_text(tmp_path / "s.svm").classes == ("9", "10")


def test_a_folder_is_searched_with_its_inner_folder(tmp_path):
    (tmp_path / "text").mkdir()
    svmlight(tmp_path / "text")
    cluto(tmp_path / "text")
    assert [collection.name for collection in find_text(tmp_path)] == ["c", "s"]
    assert [collection.name for collection in find_text(tmp_path / "text")] == ["c", "s"]


def test_collections_too_small_for_a_study(tmp_path):
    (tmp_path / "s.svm").write_text("1 1:1\n2 2:1\n" * 4 + "1 1:0\n" * 5)
    assert len(load_text(tmp_path / "s.svm", least=8).y) == 13
    with pytest.raises(TableError, match=r"s\.svm: too few documents: 8 with words, where at least 9"):
        find_text(tmp_path, least=9)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda f: cluto(f, text="3 4 9\n1 2\n2 3\n1 1\n"), "not a whole CLUTO matrix"),
        (lambda f: cluto(f, text="3 4 5\n1 2 3 1\n"), "not a whole CLUTO matrix"),
        (lambda f: cluto(f, text="3 4 5\n1 2 9 1\n2 3\n1 1 4 5\n"), "not a whole CLUTO matrix"),
        (lambda f: cluto(f, text="hello\n"), "not a whole CLUTO matrix"),
        (lambda f: cluto(f, labels="a\nb\n"), "2 labels for 3 documents"),
        (lambda f: cluto(f, labels="a\na\na\n"), "same label"),
        (lambda f: cluto(f, name="other"), r"put c\.mat\.rclass in the same folder"),
        (lambda f: matlab(f, classid=None), "no dtm and classid"),
        (lambda f: matlab(f, dtm=-COUNTS.astype(float)), "not finite numbers of at least 0"),
    ],
)
def test_damaged_collections(tmp_path, make, match):
    path = make(tmp_path)
    with pytest.raises(TableError, match=match) as caught:
        load_text(path)
    assert str(caught.value).startswith(str(path))


def test_other_damage(tmp_path):
    path = matlab(tmp_path)
    path.write_bytes(path.read_bytes()[:200])
    fails("damaged or cut off", load_text, path, error=TableError)
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    fails("save it again with -v7", load_text, path, error=TableError)
    (tmp_path / "x.doc").write_text("x")
    fails("not a known format", load_text, tmp_path / "x.doc", error=TableError)
    (tmp_path / "empty").mkdir()
    fails("holds no text files", find_text, tmp_path / "empty", error=TableError)
    fails("no such folder", find_audio, tmp_path / "none", error=TableError)


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg"])
def test_sound_becomes_mono_pieces(tmp_path, suffix):
    soundfile = pytest.importorskip("soundfile")
    left = 0.5 * np.sin(np.arange(2500) / 5)
    soundfile.write(tmp_path / f"s.{suffix}", np.column_stack([left, np.zeros(2500)]), 16000)
    recording = load_audio(tmp_path / f"s.{suffix}")
    assert recording.pieces.shape == (2, 1024)
    assert recording.rate == 16000
    tolerance = 0.05 if suffix == "ogg" else 1e-4  # OGG is lossy
    np.testing.assert_allclose(recording.pieces.ravel(), left[:2048] / 2, atol=tolerance)


def test_several_recordings_and_their_rates(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    (tmp_path / "audio").mkdir()
    soundfile.write(tmp_path / "audio" / "a.wav", np.zeros(1024), 8000)
    soundfile.write(tmp_path / "audio" / "b.wav", np.zeros(2048), 8000)
    assert find_audio(tmp_path).pieces.shape == (3, 1024)
    soundfile.write(tmp_path / "audio" / "b.wav", np.zeros(2048), 16000)
    fails(r"different sampling rates \[8000, 16000\]", find_audio, tmp_path, error=TableError)


def test_bad_sound(tmp_path, monkeypatch):
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "s.wav"
    path.write_bytes(b"RIFF nonsense")
    fails("cannot be read as sound", load_audio, path, error=TableError)
    soundfile.write(path, np.zeros(100), 8000)
    fails("shorter than one piece", load_audio, path, error=TableError)
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "soundfile":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    fails(r"skpursuit\[audio\]", load_audio, path, error=TableError)


def test_generated_text_is_sparse_reproducible_and_learnable_but_not_trivial():
    text = make_text(900, 3000, 4, random_state=3)
    again = make_text(900, 3000, 4, random_state=3)
    assert (text.X != again.X).nnz == 0
    assert text.X.shape == (900, 3000)
    assert set(np.unique(text.y)) == {0, 1, 2, 3}
    assert 0.005 < text.X.nnz / (900 * 3000) < 0.05
    X = normalize(text.X)
    model = LogisticRegression(max_iter=200).fit(X[:600], text.y[:600])
    assert 0.6 < model.score(X[600:], text.y[600:]) < 0.995


def test_generated_music_is_reproducible_harmonic_and_bounded():
    music = make_music(64, random_state=1)
    np.testing.assert_array_equal(music.pieces, make_music(64, random_state=1).pieces)
    assert music.pieces.shape == (64, 1024)
    assert 0.5 < np.abs(music.pieces).max() < 1.0
    assert np.linalg.norm(music.pieces, axis=1).min() > 0
    power = np.sort(np.abs(np.fft.rfft(music.pieces * np.hanning(1024), axis=1)) ** 2, axis=1)[:, ::-1]
    # Tones, not noise: 10% of the frequencies hold nearly all of the energy.
    assert np.mean(power[:, :51].sum(axis=1) / power.sum(axis=1)) > 0.95
