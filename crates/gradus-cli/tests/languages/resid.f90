! A stencil whose rows go through arrays of each iteration's own: a team of ranks.
subroutine resid(u, v, r, n1, n2, n3, a)
  implicit none
  integer, parameter :: m = 131
  integer :: n1, n2, n3, i3, i2, i1
  real(8) :: u(n1, n2, n3), v(n1, n2, n3), r(n1, n2, n3), a(0:3), u1(m), u2(m)
  !$omp parallel do default(shared) private(i1, i2, i3, u1, u2)
  do i3 = 2, n3 - 1
    do i2 = 2, n2 - 1
      do i1 = 1, n1
        u1(i1) = u(i1, i2 - 1, i3) + u(i1, i2 + 1, i3) + u(i1, i2, i3 - 1) + u(i1, i2, i3 + 1)
        u2(i1) = u(i1, i2 - 1, i3 - 1) + u(i1, i2 + 1, i3 - 1) + u(i1, i2 - 1, i3 + 1) + u(i1, i2 + 1, i3 + 1)
      end do
      do i1 = 2, n1 - 1
        r(i1, i2, i3) = v(i1, i2, i3) - a(0) * u(i1, i2, i3) - a(2) * (u2(i1) + u1(i1 - 1) + u1(i1 + 1)) &
          - a(3) * (u2(i1 - 1) + u2(i1 + 1))
      end do
    end do
  end do
end subroutine
