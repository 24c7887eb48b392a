! Arrays of derived types whose components begin with values, differentiated in both modes: numbers, arrays of them, and
! components of such types; a component without a value keeps what is written next.
include 'gradus.f90'
module begun
  implicit none
  type :: inner
    real(8) :: scale = 2, none
  end type
  type :: cell
    real(8) :: v = 1, w(3) = [0.5d0, 0.25d0, 3.0d0]
    integer :: id = 7
    type(inner) :: within
    real(4) :: short = 1.5
    logical :: there = .true.
  end type
contains
  real(8) function energy(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    integer :: k
    energy = 0
    do k = 1, 3
      energy = energy + of_cells(n, x, k) * k
    end do
  end function
  ! What the call before has left is written over.
  real(8) function of_cells(n, x, k)
    integer, intent(in) :: n, k
    real(8), intent(in) :: x(n)
    type(cell) :: c(n), d(2, n)
    integer :: i
    !$omp parallel do
    do i = 1, n, 2
      c(i)%v = c(i)%v * x(i)**2 * k
      c(i)%w(2) = c(i)%w(2) + x(mod(i, n) + 1)
      c(i)%id = c(i)%id + i
      c(i)%within%none = x(i) * c(i)%within%scale
      d(2, i)%within%scale = x(i) + d(1, i)%within%scale
    end do
    of_cells = 0
    !$omp parallel do reduction(+:of_cells)
    do i = 1, n
      if (mod(i, 2) == 1) of_cells = of_cells + c(i)%within%none * d(2, i)%within%scale
      if (c(i)%there) of_cells = of_cells + c(i)%v * c(i)%w(2) * c(i)%id * c(i)%w(3) * c(i)%short * d(1, i)%v
    end do
  end function
end module
program main
  use gradus
  use begun
  implicit none
  external :: gradus_vjp
  real(8), external :: gradus_jvp
  integer, parameter :: n = 60
  real(8) :: x(n), d(n), dx(n), step, by, forward
  integer :: i
  x = [(1 + sin(0.7d0 * i), i = 1, n)]
  d = [(cos(1.3d0 * i), i = 1, n)]
  dx = 0
  step = 1d-6
  by = (energy(n, x + step * d) - energy(n, x - step * d)) / (2 * step)
  forward = gradus_jvp(energy, gradus_const, n, gradus_dup, x, d)
  call gradus_vjp(energy, gradus_const, n, gradus_dup, x, dx)
  print '(f12.3, 2l2)', energy(n, x), abs(forward - by) < 1d-6 * abs(by), &
    abs(dot_product(dx, d) - forward) < 1d-10 * abs(by)
end program
