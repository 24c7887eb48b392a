c     Functions of OpenMP's library by their Fortran names, as without an interface.
      program asked
      implicit none
      integer omp_get_num_threads, omp_get_max_threads
      integer omp_get_num_procs
      external omp_get_num_threads, omp_get_max_threads
      external omp_get_num_procs
      double precision omp_get_wtime, t
      external omp_get_wtime
      integer n, m
      t = omp_get_wtime()
      call omp_set_dynamic(.false.)
      call omp_set_num_threads(3)
      m = omp_get_max_threads()
      n = 0
!$omp parallel reduction(+:n)
      n = n + 1
!$omp end parallel
      print '(2i3, 2l2)', m, n, omp_get_wtime() .ge. t,
     &  omp_get_num_procs() .gt. 0
      end
