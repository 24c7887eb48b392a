"""The command in the child process: refusals, caching, languages."""

import os
import shutil
import subprocess

import numpy as np
import pytest

import gradus
from gradus import _cache, _command

X = np.array([1.0, 4.0, 8.0])
CUBES = "double cubes(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]*x[i]*x[i]; return s; }\n"


@pytest.fixture
def runs(monkeypatch):
    """Counts runs of the compiler."""
    made = []
    run = _command.run
    monkeypatch.setattr(_command, "run", lambda words, *more: made.append(words) or run(words, *more))
    return made


def test_refusals_carry_code_line_and_remedy(tmp_path):
    file = tmp_path / "f.c"
    file.write_text("double g(double);\ndouble f(const double *x, int n) {\n    return g(x[0]);\n}\n")
    with pytest.raises(gradus.Refused) as caught:
        gradus.load(file).f
    refused = caught.value
    assert (refused.code, refused.line) == ("GRD0005", 3)
    assert refused.file.endswith("f.c") and refused.help and "error[GRD0005]" in str(refused)


def test_sources_that_do_not_compile():
    with pytest.raises(gradus.Refused, match="expected expression") as caught:
        gradus.from_source("double f(double x) { return +; }").f
    assert caught.value.code == "GRD0022"


def test_unknown_functions_name_the_others():
    program = gradus.from_source(CUBES)
    with pytest.raises(AttributeError, match="cubes"):
        program.cube
    assert not hasattr(program, "cube") and hasattr(program, "cubes")


def test_missing_files_and_words():
    with pytest.raises(FileNotFoundError):
        gradus.load("nowhere.c")
    with pytest.raises(TypeError, match="list of words"):
        gradus.load(__file__, flags="-O3")
    with pytest.raises(ValueError, match="unknown language"):
        gradus.from_source("", lang="cobol")


def test_missing_command(monkeypatch):
    monkeypatch.delenv("GRADUS_COMMAND", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(_command, "BUNDLED", _command.Path("/nowhere/gradus"))
    with pytest.raises(gradus.CommandMissing, match="GRADUS_COMMAND"):
        gradus.from_source(CUBES).cubes
    monkeypatch.setenv("GRADUS_COMMAND", "/nowhere/gradus")
    with pytest.raises(gradus.CommandMissing, match="is not a program"):
        gradus.from_source(CUBES).cubes


def test_missing_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("GRADUS_CLANG", raising=False)
    with pytest.raises(gradus.Refused, match="no clang was found") as caught:
        gradus.from_source(CUBES + "/* no compiler */").cubes
    assert "install clang" in caught.value.help


def test_results_are_cached_by_content(tmp_path, runs):
    (tmp_path / "scale.h").write_text("#define SCALE 2\n")
    file = tmp_path / "f.c"
    file.write_text('#include "scale.h"\ndouble f(const double *x, int n) { return SCALE * x[0] * n; }\n')
    x = np.ones(1)
    assert gradus.load(file).f.grad(x) == [2.0]
    assert gradus.load(file).f.grad(x) == [2.0]
    assert len(runs) == 1
    (tmp_path / "scale.h").write_text("#define SCALE 3\n")
    assert gradus.load(file).f.grad(x) == [3.0]
    assert len(runs) == 2
    assert gradus.load(file, flags=["-O3"]).f.grad(x) == [3.0]
    file.write_text("double f(const double *x, int n) { return 5 * x[0] * n; }\n")
    assert gradus.load(file).f.grad(x) == [5.0]
    assert len(runs) == 4


def test_static_libraries_are_never_stale(tmp_path):
    file = tmp_path / "f.c"
    file.write_text("double half(double); double f(double x, int n) { return half(n) * x; }\n")
    for factor in (2, 3):
        (tmp_path / "half.c").write_text(f"double half(double x) {{ return x / {factor}; }}\n")
        for line in ("clang-22 -fPIC -c half.c", "ar rc libhalf.a half.o"):
            subprocess.run(line.split(), cwd=tmp_path, check=True)
        assert gradus.load(file, flags=["-lhalf", f"-L{tmp_path}"]).f.grad(1.0, 6) == 6 / factor


def test_a_damaged_cache_is_made_again(runs):
    source = CUBES + "/* damaged */"
    gradus.from_source(source)
    file = _cache.scratch() / "f.c"
    file.write_text(source)
    gradus.load(file).cubes
    for entry in _cache.folder().glob("*/entry.json"):
        entry.write_text("{")
    assert gradus.load(file).cubes(X) == np.sum(X**3)
    assert len(runs) == 2


def test_two_processes_share_the_cache(tmp_path):
    file = tmp_path / "cubes.c"
    file.write_text(CUBES)
    program = f"import gradus, numpy; print(gradus.load({str(file)!r}).cubes.grad(numpy.ones(2)))"
    both = [subprocess.Popen([os.sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for one in both:
        assert one.communicate()[0] == "[3. 3.]\n" and one.returncode == 0


def test_the_command_runs_in_a_child(runs):
    maps = open("/proc/self/maps").read()
    gradus.from_source(CUBES + "/* child */").cubes
    assert "libLLVM" not in maps and "libLLVM" not in open("/proc/self/maps").read()


FORTRAN = """
real(8) function spring(x, n, k)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n), k
  integer :: i
  spring = 0
  do i = 1, n - 1
    spring = spring + k * (x(i+1) - x(i))**2
  end do
end function
subroutine weigh(a, y, total)
  real(8), intent(in) :: a(:,:)
  real(8), intent(out) :: y(:)
  real(8), intent(out) :: total
  integer :: i
  total = 0
  do i = 1, size(a, 1)
    y(i) = sum(a(i, :)**2) * i
    total = total + y(i)
  end do
end subroutine
"""


@pytest.fixture(scope="module")
def fortran():
    return gradus.from_source(FORTRAN, "fortran")


def test_fortran_numbers_by_address(fortran):
    f = fortran.spring
    assert repr(f) == "<gradus function spring(x: in f8[n], k: in f8, n: length) -> f8>"
    of_x, of_k = f.grad(X, 2.0)
    np.testing.assert_allclose(of_x, [-12, -4, 16])
    assert of_k == 25.0
    assert f(X, 2.0) == 50.0 and f.check(X, 2.0).is_right
    np.testing.assert_allclose(f.wrt("x").hvp(X, 2.0, np.array([1.0, 0, 0])), [4, -4, 0])


def test_fortran_arrays_with_a_shape(fortran):
    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    y = np.zeros(2)
    f = fortran.weigh.signature("total: out")
    assert f(a, y) == 105.0
    np.testing.assert_array_equal(y, [5, 100])
    of_a, of_y = f.vjp(a, y, np.zeros(2), 1.0)
    assert of_a.flags.f_contiguous
    np.testing.assert_allclose(of_a, 2 * a * [[1], [2]])
    assert f.check(a, y).is_right
    with pytest.raises(ValueError, match="pass numpy.asfortranarray"):
        f(np.arange(6.0).reshape(2, 3), y)


def test_cplusplus():
    program = gradus.from_source(
        "#include <cmath>\n#include <numeric>\n#include <vector>\n"
        "double norm(const double *x, std::size_t n) {\n"
        "  std::vector<double> v(x, x + n);\n  for (double &e : v) e = std::sin(e);\n"
        "  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));\n}\n", "c++")
    s = np.sin(X)
    np.testing.assert_allclose(program.norm.grad(X), s * np.cos(X) / np.linalg.norm(s))


def test_several_files_and_libraries(tmp_path):
    (tmp_path / "a.c").write_text("double g(double); double f(const double *x, int n) { return g(x[0]) * n; }\n")
    (tmp_path / "b.c").write_text("double g(double x) { return x * x; }\n")
    program = gradus.load([tmp_path / "a.c", tmp_path / "b.c"])
    assert program.f.grad(X[:1]) == [2.0]


@pytest.mark.skipif(shutil.which("clang-22") is None, reason="clang-22 makes the bitcode")
def test_bitcode(tmp_path):
    (tmp_path / "f.c").write_text(CUBES)
    for words in (["-g", "-o", "typed.bc"], ["-o", "plain.bc"]):
        subprocess.run(["clang-22", "-O1", "-c", "-emit-llvm", "f.c", *words], cwd=tmp_path, check=True)
    np.testing.assert_allclose(gradus.load(tmp_path / "typed.bc").cubes.grad(X), 3 * X**2)
    with pytest.raises(gradus.SignatureError, match="type behind"):
        gradus.load(tmp_path / "plain.bc").cubes
    plain = gradus.load(tmp_path / "plain.bc", signatures={"cubes": "arg0: f8[arg1]"}).cubes
    np.testing.assert_allclose(plain.grad(X), 3 * X**2)
