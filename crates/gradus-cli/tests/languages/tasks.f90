! Loops of tasks, made by one thread of a team and by each task for its rows, and tasks that take nothing along.
module counted
  integer :: count = 0
contains
  subroutine add()
    !$omp atomic
    count = count + 1
  end subroutine
end module

program tasks
  use counted
  implicit none
  integer :: x(200), y(200), z(100) = 0, i, j, last
  real(8) :: a(16, 16)
  do i = 1, 200
    x(i) = i
    y(i) = 2 * i
  end do
  !$omp parallel num_threads(4)
  !$omp master
  !$omp taskloop
  do i = 1, 200
    x(i) = x(i) + y(i)
  end do
  !$omp end taskloop
  !$omp end master
  !$omp end parallel
  a = 0
  !$omp parallel
  !$omp single
  do i = 1, 16
    !$omp task firstprivate(i) private(j)
    do j = 1, 16
      a(j, i) = i * j
    end do
    !$omp end task
  end do
  !$omp end single
  !$omp end parallel
  !$omp parallel
  !$omp single
  do i = 1, 7
    !$omp task
    call add()
    !$omp end task
  end do
  !$omp task untied
  call add()
  !$omp end task
  !$omp end single
  !$omp end parallel
  !$omp parallel
  !$omp single
  !$omp taskloop grainsize(4)
  do i = 2, 100, 3
    z(i) = z(i) + i
  end do
  !$omp end taskloop
  !$omp taskloop
  do i = 99, 1, -7
    z(i) = z(i) + 1000
  end do
  !$omp end taskloop
  !$omp taskloop num_tasks(3)
  do i = 5, 4
    z(i) = 100000
  end do
  !$omp end taskloop
  !$omp end single
  !$omp end parallel
  print '(I0,1X,F0.1,1X,I0,1X,I0)', sum(x), sum(a), count, sum(z)
end program
