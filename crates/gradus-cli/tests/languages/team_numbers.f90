! The numbers of teams, outside of all teams and by both names.
program teams
  use omp_lib
  implicit none
  integer :: i, s, t
  integer, external :: which
  s = 0
  t = 0
  !$omp parallel do reduction(+:s, t)
  do i = 1, 1000
    s = s + omp_get_team_num()
    t = t + omp_get_num_teams()
  end do
  print '(3i6)', s, t, which()
end program
integer function which()
  implicit none
  integer, external :: omp_get_team_num, omp_get_num_teams
  integer :: i
  which = 0
  !$omp parallel do reduction(+:which)
  do i = 1, 1000
    which = which + 2 * omp_get_num_teams() + omp_get_team_num()
  end do
end function
