! Sum of squared differences of data and a population, by the logistic equation with Euler's method. p holds the rate,
! the capacity and the initial population; times between data are `steps` steps of length h.
real(8) function misfit(p, data, steps, h)
  real(8), intent(in) :: p(3), data(:), h
  integer, intent(in) :: steps
  real(8) :: u
  integer :: i, k
  u = p(3)
  misfit = 0
  do i = 1, size(data)
    do k = 1, steps
      u = u + h * p(1) * u * (1 - u / p(2))
    end do
    misfit = misfit + (u - data(i))**2
  end do
end function
