! A recursion of tasks, one of them with a condition, and a loop that words can say.
recursive function fib(n) result(r)
  implicit none
  integer :: n, r, x, y
  if (n < 2) then
    r = n
    return
  end if
  !$omp task shared(x)
  x = fib(n - 1)
  !$omp end task
  !$omp task shared(y) if(n > 6)
  y = fib(n - 2)
  !$omp end task
  !$omp taskwait
  r = x + y
end function

program tree
  implicit none
  integer :: r, fib, i
  real(8) :: a(1000)
  !$omp parallel
  !$omp single
  r = fib(20)
  !$omp end single
  !$omp end parallel
  !$omp parallel do
  do i = 1, 1000
    a(i) = sqrt(real(i, 8) ** 2)
  end do
  print '(I0,1X,F0.1)', r, sum(a)
end program
