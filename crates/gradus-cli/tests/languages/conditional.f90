! Regions with a condition: a team where it holds, one thread where it does not, whatever else is asked.
module conditional
  use omp_lib
  implicit none
contains
  ! What a region is told: its threads, the levels around, the active ones, whether threads run beside each other.
  function told(wanted, threads) result(seen)
    logical, intent(in) :: wanted
    integer, intent(in) :: threads
    integer :: seen(4), inactive
    seen = -1
    !$omp parallel if(wanted) num_threads(threads) proc_bind(close)
    !$omp single
    inactive = 0
    if (omp_in_parallel()) inactive = 1
    seen = [omp_get_num_threads(), omp_get_level(), omp_get_active_level(), inactive]
    !$omp end single
    !$omp end parallel
  end function
  subroutine add(n, a, total)
    integer, intent(in) :: n
    real(8), intent(inout) :: a(n)
    real(8), intent(out) :: total
    integer :: i
    total = 0
    !$omp parallel do if(n > 100) reduction(+:total)
    do i = 1, n
      a(i) = a(i) + i
      total = total + a(i)
    end do
  end subroutine
  recursive integer function fib(n) result(r)
    integer, intent(in) :: n
    integer :: a, b
    r = n
    if (n < 2) return
    !$omp task shared(a)
    a = fib(n - 1)
    !$omp end task
    !$omp task shared(b)
    b = fib(n - 2)
    !$omp end task
    !$omp taskwait
    r = a + b
  end function
  integer function of_tasks(n, wanted)
    integer, intent(in) :: n
    logical, intent(in) :: wanted
    !$omp parallel if(wanted)
    !$omp single
    of_tasks = fib(n)
    !$omp end single
    !$omp end parallel
  end function
  ! Right on one thread only, as each iteration takes what the one before it left.
  subroutine in_order(n, a, wanted)
    integer, intent(in) :: n
    integer, intent(inout) :: a(n)
    logical, intent(in) :: wanted
    integer :: i
    !$omp parallel do if(wanted) schedule(dynamic)
    do i = 2, n
      a(i) = a(i - 1) + 1
    end do
  end subroutine
end module
program main
  use conditional
  implicit none
  real(8) :: a(1000), total, small
  integer :: b(2000), i, inner(4, 2)
  a = 1
  b = 0
  call add(1000, a, total)
  call add(100, a, small)
  call in_order(2000, b, .false.)
  print '(2f12.1, 3i8)', total, small, of_tasks(15, .true.), of_tasks(15, .false.), b(2000)
  print '(12i3)', told(.true., 3), told(.false., 3), told(.true., 1)
  ! In a region of one thread, and of two, where there is one more level.
  call omp_set_max_active_levels(2)
  !$omp parallel if(.false.)
  inner(:, 1) = told(.true., 2)
  !$omp end parallel
  !$omp parallel num_threads(2) if(total > 0)
  !$omp master
  inner(:, 2) = told(.false., 2)
  !$omp end master
  !$omp end parallel
  print '(8i3)', inner
  i = 0
  !$omp parallel if(.true.) num_threads(3)
  !$omp atomic
  i = i + 1
  !$omp end parallel
  print '(i3)', i
end program
