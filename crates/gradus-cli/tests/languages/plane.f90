! Diffusion in a plane, and the energy of what is left: a stencil, a sum, arrays of known and assumed size.
module kernels
contains
  subroutine step(u, v, n)
    integer, intent(in) :: n
    real(8), intent(in) :: u(n, n)
    real(8), intent(inout) :: v(n, n)
    integer :: i, j
    !$omp parallel do private(i)
    do j = 2, n - 1
      do i = 2, n - 1
        v(i, j) = u(i, j) + 0.1d0 * (u(i-1, j) + u(i+1, j) + u(i, j-1) + u(i, j+1) - 4 * u(i, j))
      end do
    end do
  end subroutine

  real(8) function energy(u, n, steps) bind(c, name='energy')
    integer, intent(in), value :: n, steps
    real(8), intent(in) :: u(n, n)
    real(8) :: a(n, n), b(n, n)
    real(8) :: s
    integer :: t, i, j
    a = u
    b = u
    do t = 1, steps
      call step(a, b, n)
      a(2:n-1, 2:n-1) = b(2:n-1, 2:n-1) ** 2
    end do
    s = 0
    !$omp parallel do private(i) reduction(+:s)
    do j = 1, n
      do i = 1, n
        s = s + a(i, j) * sin(u(i, j))
      end do
    end do
    energy = s
  end function
end module
