! Variables of each thread's own: used between regions, declared where nothing uses them, and in one region.
subroutine scale(n, x, by)
  implicit none
  integer :: n, i
  real(8) :: x(n), by, factor
  common /mine/ factor
  !$omp threadprivate(/mine/)
  !$omp parallel do
  do i = 1, n
    x(i) = by * x(i)
  end do
end subroutine

program own
  use omp_lib
  implicit none
  integer, parameter :: n = 1000
  real(8) :: x(n), s, factor
  integer :: i, ranks
  common /mine/ factor
  !$omp threadprivate(/mine/)
  factor = 3
  !$omp parallel do
  do i = 1, n
    x(i) = i
  end do
  factor = factor + 1
  call scale(n, x, factor)
  s = 0
  ranks = 0
  !$omp parallel copyin(/mine/) reduction(+:s, ranks)
  factor = factor + omp_get_thread_num()
  ranks = ranks + 1
  s = s + factor
  !$omp end parallel
  print '(f12.1, l2)', sum(x), s == 4d0 * ranks + ranks * (ranks - 1) / 2
end program
