! An array that is reduced, and a number that all iterations add to and take away from atomically.
module reduced
contains
  subroutine sums(n, x, y)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    real(8), intent(out) :: y
    real(8) :: s(3), t
    integer :: i
    s = 0
    t = 0
    !$omp parallel do reduction(+:s)
    do i = 1, n
      s(1) = s(1) + x(i)
      s(2) = s(2) + x(i)**2
      s(3) = s(3) + x(i) * i
    end do
    !$omp parallel do
    do i = 1, n
      !$omp atomic
      t = t + x(i) * s(1)
      !$omp atomic
      t = t - s(2) * x(i)**2
    end do
    y = t + s(3)
  end subroutine
end module
