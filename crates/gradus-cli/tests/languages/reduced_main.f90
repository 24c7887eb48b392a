include 'gradus.f90'

program main
  use reduced
  use gradus
  implicit none
  external :: gradus_vjp
  integer, parameter :: n = 400
  real(8) :: x(n), d(n), g(n), y, dy
  integer :: i
  x = [(mod(i, 7) * 0.25d0, i = 1, n)]
  d = 0
  dy = 1
  call gradus_vjp(sums, gradus_const, n, gradus_dup, x, d, gradus_dup, y, dy)
  ! By hand: y = (sum x)**2 - (sum x**2)**2 + sum i x(i).
  g = 2 * sum(x) - 4 * sum(x**2) * x + [(i, i = 1, n)]
  print '(2l2)', abs(y - (sum(x)**2 - sum(x**2)**2 + sum(x * [(i, i = 1, n)]))) < 1d-6, &
    maxval(abs(d - g)) < 1d-9
end program
