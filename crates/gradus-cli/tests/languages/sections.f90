! Assignments of array sections in a `workshare`: their bounds are computed by one thread and copied to the others, one
! by one. Also in derivatives.
include 'gradus.f90'
module assigned
  implicit none
contains
  subroutine assign(n, m, a, b, c)
    integer, intent(in) :: n, m
    real(8), intent(inout) :: a(n, m), b(n, m), c(:)
    !$omp parallel workshare
    a(1:n, 1:m) = 1
    b(1:n, 2:m - 1) = a(1:n, 1:m - 2) * b(1:n, 3:m)
    c(2:n - 1) = -c(2:n - 1) / c(1) + b(2:n - 1, 2)
    !$omp end parallel workshare
  end subroutine
  ! Each thread has all of what one thread reads.
  subroutine read_by_one(total)
    integer, intent(out) :: total
    integer :: i, k(3)
    real(8) :: x
    total = 0
    !$omp parallel private(i, k, x) num_threads(4) reduction(+:total)
    do i = 1, 10
      !$omp single
      k = [i, 2 * i, 3 * i]
      x = 0.5d0 * i
      !$omp end single copyprivate(k, x)
      total = total + sum(k) + int(2 * x)
      k = -1
      x = -1
    end do
    !$omp end parallel
  end subroutine
  real(8) function left(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    real(8) :: a(n, 6), b(n, 6), c(n)
    integer :: j
    do j = 1, 6
      b(:, j) = x**j
    end do
    c = x + 2
    call assign(n, 6, a, b, c)
    left = sum(a * b) + sum(c**2)
  end function
end module
program main
  use gradus
  use assigned
  implicit none
  external :: gradus_vjp
  real(8), external :: gradus_jvp
  integer, parameter :: n = 300
  real(8) :: x(n), d(n), dx(n), step, by, forward
  integer :: i, total
  x = [(1 + sin(0.1d0 * i), i = 1, n)]
  d = [(cos(0.3d0 * i), i = 1, n)]
  dx = 0
  step = 1d-6
  by = (left(n, x + step * d) - left(n, x - step * d)) / (2 * step)
  forward = gradus_jvp(left, gradus_const, n, gradus_dup, x, d)
  call gradus_vjp(left, gradus_const, n, gradus_dup, x, dx)
  call read_by_one(total)
  print '(f10.3, i6, 2l2)', left(n, x), total, abs(forward - by) < 1d-6 * abs(by), &
    abs(dot_product(dx, d) - forward) < 1d-10 * abs(by)
end program
