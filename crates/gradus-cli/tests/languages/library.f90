! Functions of flang's run-time library: with and without flang's own expansion at `-O1`.
module library
  use iso_c_binding
  implicit none
contains
  ! Copies along a new dimension; elements under masks.
  real(c_double) function masked(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    real(c_double), allocatable :: packed(:)
    real(c_double) :: a(n, 3), b(3, n), field(n)
    logical :: even(n)
    integer :: i
    even = [(mod(i, 2) == 0, i = 1, n)]
    a = spread(x * x, 2, 3)
    b = spread(x, 1, 3)
    packed = pack(x * x, x > 0.5d0)
    field = unpack(packed, even, x)
    masked = sum(a(:, 2) * b(1, :)) + sum(packed**2) + sum(field * x)
    packed = pack(a(:, 1:2), .true.)
    masked = masked + packed(n + 1) * packed(2)
    packed = pack(x, even, vector=[x, x])
    masked = masked + sum(packed * [(1d0 * i, i = 1, 2 * n)]) + size(packed)
    field = unpack(x, even, 0d0)
    masked = masked + sum(field**2)
  end function

  ! Other shapes, in another order, with a pad.
  real(c_double) function reshaped(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    real(c_double), allocatable :: a(:, :), c(:, :)
    real(c_double) :: b(2, 3), d(2, 3)
    complex(c_double) :: z(3, 2)
    a = reshape(x * x, [3, n / 2 + 1], pad=[x(1), x(2) * x(3)])
    b = reshape(x(n:2:-1), [2, 3], order=[2, 1])
    c = transpose(b)
    d = reshape(reshape(x(1:6), [3, 2], order=[2, 1]), [2, 3])
    z = transpose(reshape(cmplx(x(1:6), x(2:7), c_double), [2, 3]))
    reshaped = sum(a(1, :) * a(3, :)) + sum(c(:, 1) * c(:, 2)**2) + sum(b * d) + aimag(z(3, 1) * z(1, 2))
  end function

  real(c_double) function shifted(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    real(c_double) :: a(3, 2), b(3, 2)
    real(c_float) :: y(n)
    a = reshape(x, [3, 2])
    b = cshift(a, [1, -1], dim=1) * cshift(a, 1, dim=2)
    shifted = sum(b**2) + sum(cshift(x, 2) * x) + sum(eoshift(x, -1) * x) + sum(eoshift(x, 3, x(2)) * x)
    b = eoshift(a, [1, -1], [x(1), x(7)], dim=1) + eoshift(a, 1, dim=2)
    y = real(x, c_float)
    shifted = shifted + sum(b * a) + size(cshift(y, 1))
  end function

  real(c_double) function reduced(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    real(c_double) :: a(2, 3), at(1)
    integer :: place(2)
    a = reshape(x * x, [2, 3])
    place = maxloc(a)
    at = x(minloc(x))
    reduced = sum(x) + minval(x) + 2 * maxval(x * x) + product(x) + a(place(1), place(2)) * 3 + at(1)
    reduced = reduced + sum(sum(a, dim=1)**2) + maxval(sum(a, dim=2)) + sum(minval(a, dim=1) * x(1:3))
    reduced = reduced + sum(product(a, dim=2) * x(6:7)) + sum(norm2(a, dim=1) * x(1:3)) + norm2(a) * x(4)
    reduced = reduced + sum(x * x, mask=x > 0.45d0) + maxval(x, mask=x < 0.75d0) + x(maxloc(x, dim=1, mask=x < 0.75d0))
    place = minloc(a, dim=2)
    reduced = reduced + a(1, place(1)) * a(2, place(2)) + sum(sum(a, dim=2, mask=a > 0.2d0)**2)
  end function

  real(c_double) function multiplied(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    real(c_double) :: a(2, 3), b(3, 2), c(2, 2), d(3, 3)
    a = reshape(x, [2, 3])
    b = reshape(x * x, [3, 2])
    c = matmul(a, b)
    d = matmul(transpose(a), a)
    multiplied = sum(c**2) + dot_product(x, x * x) + sum(matmul(c, [1d0, x(7)])) + sum(matmul(x(1:3), b)) + d(1, 3) * d(2, 2)
  end function

  ! Parts of floating-point numbers.
  real(c_double) function models(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    integer :: i
    models = 0
    do i = 1, n
      models = models + scale(x(i), 3) * fraction(x(i)) + set_exponent(x(i), 2) * exponent(x(i))
      models = models + rrspacing(x(i)) * 1d-16 + spacing(x(i)) * x(i)
    end do
  end function
end module
