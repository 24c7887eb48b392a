! The derivative of a loop with a condition, where it holds and where not.
include 'gradus.f90'
module conditional
  implicit none
contains
  real(8) function energy(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    integer :: i
    energy = 0
    !$omp parallel do reduction(+:energy) if(n > 100)
    do i = 1, n - 1
      energy = energy + sqrt(1 + (x(i + 1) - x(i))**2)
    end do
  end function
  subroutine wave(n, x, y)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    real(8), intent(inout) :: y(n)
    integer :: i
    !$omp parallel if(n > 100) num_threads(3)
    !$omp do
    do i = 1, n
      y(i) = x(i)**2 * y(i)
    end do
    !$omp do
    do i = 1, n
      y(i) = sin(y(i)) + x(n + 1 - i)
    end do
    !$omp end parallel
  end subroutine
  real(8) function waves(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    real(8) :: y(n)
    y = 1.5d0
    call wave(n, x, y)
    waves = sum(y**2)
  end function
end module
program main
  use gradus
  use conditional
  implicit none
  external :: gradus_vjp
  real(8), external :: gradus_jvp
  print '(2l2)', agrees(1000), agrees(50)
contains
  ! Both derivatives along a direction beside differences.
  logical function agrees(n)
    integer, intent(in) :: n
    real(8) :: x(n), d(n), dx(n), step, by(2), forward(2)
    integer :: i
    x = [(sin(0.01d0 * i), i = 1, n)]
    d = [(cos(0.3d0 * i), i = 1, n)]
    step = 1d-6
    by(1) = (energy(n, x + step * d) - energy(n, x - step * d)) / (2 * step)
    by(2) = (waves(n, x + step * d) - waves(n, x - step * d)) / (2 * step)
    forward(1) = gradus_jvp(energy, gradus_const, n, gradus_dup, x, d)
    forward(2) = gradus_jvp(waves, gradus_const, n, gradus_dup, x, d)
    agrees = all(abs(forward - by) < 1d-6 * (1 + abs(by)))
    dx = 0
    call gradus_vjp(energy, gradus_const, n, gradus_dup, x, dx)
    agrees = agrees .and. abs(dot_product(dx, d) - forward(1)) < 1d-10 * (1 + abs(by(1)))
    dx = 0
    call gradus_vjp(waves, gradus_const, n, gradus_dup, x, dx)
    agrees = agrees .and. abs(dot_product(dx, d) - forward(2)) < 1d-10 * (1 + abs(by(2)))
  end function
end program
