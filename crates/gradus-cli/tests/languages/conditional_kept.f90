! A region of OpenMP's library with a condition, which sets a number of threads for itself.
subroutine sets(wanted)
  use omp_lib
  implicit none
  logical, intent(in) :: wanted
  integer :: i
  !$omp parallel do ordered if(wanted) num_threads(3) schedule(static, 1)
  do i = 1, 3
    call omp_set_num_threads(7)
    !$omp ordered
    print '(a)', 'sets'
    !$omp end ordered
  end do
end subroutine
