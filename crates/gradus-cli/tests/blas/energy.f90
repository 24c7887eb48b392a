subroutine energy(a, b, x, n, s)
  implicit none
    integer, intent(in) :: n
    real(8), intent(in) :: a(n,n), b(n,n), x(n)
    real(8), intent(out) :: s
    real(8) :: c(n,n), y(n)
    real(8), external :: ddot, dnrm2
    c = 1.5d0
    call dgemm('N', 'T', n, n, n, 1.3d0, a, n, b, n, 0.5d0, c, n)
    call dgemv('T', n, n, 2d0, c, n, x, 1, 0d0, y, 1)
    call dtrsv('L', 'N', 'N', n, a, n, y, 1)
    call dsyrk('U', 'N', n, n, 0.2d0, a, n, 1d0, c, n)
    s = ddot(n, y, 1, x, 1) + dnrm2(n, y, 1) + sum(c**2)
end subroutine
