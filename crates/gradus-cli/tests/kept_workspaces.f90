module kept
  implicit none
  type arrays
    integer :: n = 0
    real(8), allocatable :: a(:), b(:, :)
  end type
  type(arrays) :: s
  real(8), allocatable :: work(:)
  real(8), allocatable, target :: whole(:)
  real(8), pointer :: part(:)
contains
  subroutine need(n)
    integer, intent(in) :: n
    if (allocated(work)) then
      if (size(work) < n) deallocate(work)
    end if
    if (.not. allocated(work)) allocate(work(n))
  end subroutine
  subroutine grow(n)
    integer, intent(in) :: n
    real(8), allocatable :: longer(:)
    if (.not. allocated(work)) then
      allocate(work(n))
      return
    end if
    if (size(work) >= n) return
    allocate(longer(n))
    longer(1:size(work)) = work
    call move_alloc(longer, work)
  end subroutine
  subroutine fill(n, x, a)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    real(8), intent(out) :: a(n)
    integer :: i
    do i = 1, n
      a(i) = x(i)*x(i)*i
    end do
  end subroutine
end module

function grown(n, x) bind(c) result(r)
  use kept
  implicit none
  integer(4), value :: n
  real(8) :: x(n), r
  integer :: i
  call need(n)
  do i = 1, n
    work(i) = x(i)*x(i)
  end do
  r = 0
  do i = 1, n
    r = r + work(i)*work(n + 1 - i)
  end do
end function

function components(n, x) bind(c) result(r)
  use kept
  implicit none
  integer(4), value :: n
  real(8) :: x(n), r
  integer :: i, j
  real(8), allocatable, save :: w(:)
  if (.not. allocated(w)) allocate(w(n))
  if (.not. allocated(s%a)) allocate(s%a(n), s%b(n, n))
  call fill(n, x, s%a)
  call fill(n, x, w)
  do j = 1, n
    do i = 1, n
      s%b(i, j) = s%a(i)*w(j)
    end do
  end do
  r = sum(s%b) + dot_product(s%a, w)
end function

function moved(n, x) bind(c) result(r)
  use kept
  implicit none
  integer(4), value :: n
  real(8) :: x(n), r
  integer :: i
  call grow(2)
  work(1) = x(1)
  work(2) = x(2)*x(1)
  call grow(n)
  do i = 3, n
    work(i) = x(i)*work(i - 1)
  end do
  r = sum(work(1:n)**2)
end function

function pointed(n, x) bind(c) result(r)
  use kept
  implicit none
  integer(4), value :: n
  real(8) :: x(n), r
  integer :: i
  do i = 1, n
    whole(i) = x(i)*x(i)
  end do
  r = sum(part(1:n))*x(1)
end function
