include 'gradus.f90'

module work
  implicit none
contains
  real(8) function energy(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    integer :: i
    energy = 0
    !$omp parallel do reduction(+:energy)
    do i = 1, n
      energy = energy + sin(x(i)) * x(i)
    end do
  end function

  subroutine spread(n, a, x, y)
    integer, intent(in) :: n
    real(8), intent(in) :: a, x(:)
    real(8), intent(inout) :: y(:)
    integer :: i
    !$omp parallel do
    do i = 1, n
      y(i) = a * x(i) * x(i)
    end do
  end subroutine

  real(8) function cube(x)
    real(8), intent(in) :: x
    cube = x**POWER
  end function
end module

program driver
  use work
  use gradus
  implicit none
  interface
    subroutine gradient(f, m, n, a, da, x, dx, y, dy) bind(c, name="__gradus_vjp_of_spread")
      external :: f
      integer :: m, n
      real(8) :: a, da, x(:), dx(:), y(:), dy(:)
    end subroutine
  end interface
  external :: gradus_vjp
  real(8), external :: gradus_jvp
  integer, parameter :: n = 20000
  real(8), allocatable :: x(:), dx(:), y(:), dy(:)
  real(8) :: a, da
  integer :: i
  allocate(x(n), dx(n), y(n), dy(n))
  x = [(0.001d0 * i, i = 1, n)]

  dx = 0
  call gradus_vjp(energy, gradus_const, n, gradus_dup, x, dx)
  call expect(maxval(abs(dx - (cos(x) * x + sin(x)))) < 1d-12)

  a = 2
  da = 0
  dx = 0
  dy = 1
  call gradient(spread, gradus_const, n, a, da, x, dx, y, dy)
  call expect(abs(da - sum(x * x)) < 1d-9 * da)
  call expect(maxval(abs(dx - 2 * a * x)) < 1d-12)

  da = 1
  call expect(abs(gradus_jvp(cube, gradus_dup, a, da) - 12) < 1d-12)
  print '(a)', 'right'
contains
  subroutine expect(is_so)
    logical, intent(in) :: is_so
    if (.not. is_so) error stop 'wrong'
  end subroutine
end program
