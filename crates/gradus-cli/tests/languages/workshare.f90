! Array assignments shared by a team, a number that one thread assigns for all between them, and what the
! library writes where it is told to.
program shared
  use omp_lib
  implicit none
  integer, parameter :: n = 40
  real :: a(n, n), b(n, n), c(n, n), d(n, n)
  integer :: factor, chunk
  integer(omp_sched_kind) :: kind
  b = 2
  d = 3
  chunk = 77
  kind = omp_sched_auto
  call omp_set_schedule(omp_sched_dynamic, 5)
  call omp_get_schedule(kind, chunk)
  !$omp parallel shared(factor)
  !$omp workshare
  a = b
  factor = chunk
  c = d * factor
  !$omp end workshare
  !$omp end parallel
  print '(2f8.1, l2)', sum(a), sum(c), kind == omp_sched_dynamic
end program
