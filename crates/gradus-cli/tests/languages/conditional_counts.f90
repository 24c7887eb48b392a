! How many threads regions of ours have, behind one that is OpenMP's library's.
program main
  use omp_lib
  implicit none
  integer :: i, k, count(2)
  do k = 1, 2
    call sets(k == 1)
    i = 0
    !$omp parallel
    !$omp atomic
    i = i + 1
    !$omp end parallel
    count(k) = i
  end do
  print '(2i3)', count
end program
