! Functions whose variables point.
module pointers
  use iso_c_binding
  implicit none
  type node
    real(8) :: key, weight
    type(node), pointer :: left => null(), right => null()
  end type
  type link
    real(8) :: v
    type(link), pointer :: next
  end type
  type plane
    integer :: n
    real(8), pointer :: u(:) => null(), v(:) => null()
  end type
  type point
    real(8) :: a(3)
    integer :: k
    real(8) :: m
  end type
  type cloud
    integer :: n
    type(point), pointer :: p(:)
  end type
  type row
    real(8), pointer :: v(:) => null()
  end type
contains
  recursive subroutine insert(t, key, weight)
    type(node), pointer, intent(inout) :: t
    real(8), intent(in) :: key, weight
    if (.not. associated(t)) then
      allocate(t)
      t%key = key
      t%weight = weight
    else if (key < t%key) then
      call insert(t%left, key, weight * t%weight)
    else
      call insert(t%right, key, weight + t%weight)
    end if
  end subroutine
  recursive real(8) function total(t) result(s)
    type(node), pointer, intent(in) :: t
    s = 0
    if (associated(t)) s = t%weight * t%key + 0.5d0 * total(t%left) + total(t%right) * t%weight
  end function
  recursive subroutine fell(t)
    type(node), pointer, intent(inout) :: t
    if (.not. associated(t)) return
    call fell(t%left)
    call fell(t%right)
    deallocate(t)
  end subroutine
  real(8) function tree(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    type(node), pointer :: root
    integer :: i
    nullify(root)
    do i = 1, n
      call insert(root, x(i), x(i)**2)
    end do
    tree = total(root)
    call fell(root)
  end function

  real(8) function list(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    type(link), pointer :: head, at
    integer :: i
    nullify(head)
    do i = 1, n
      allocate(at)
      at%v = x(i)**2
      at%next => head
      head => at
    end do
    list = 0
    at => head
    do while (associated(at))
      list = list + at%v * sin(at%v)
      at => at%next
    end do
    do while (associated(head))
      at => head%next
      deallocate(head)
      head => at
    end do
  end function

  subroutine make(p, n)
    type(plane), intent(inout) :: p
    integer, intent(in) :: n
    p%n = n
    allocate(p%u(n), p%v(0:n+1))
    p%u = 0
    p%v = 0
  end subroutine
  subroutine step(p)
    type(plane), intent(inout) :: p
    integer :: i
    do i = 1, p%n
      p%u(i) = p%v(i-1) - 2 * p%v(i) + p%v(i+1) * p%v(i)
    end do
    p%v(1:p%n) = p%v(1:p%n) + 0.1d0 * p%u
  end subroutine
  real(8) function grid(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    type(plane) :: p
    integer :: k
    call make(p, n)
    p%v(1:n) = x
    do k = 1, 5
      call step(p)
    end do
    grid = sum(p%v**2)
    deallocate(p%u, p%v)
  end function

  real(8) function buffers(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    real(8), pointer :: old(:), new(:), other(:), first(:)
    integer :: i, k, state
    allocate(old(n), source=x)
    allocate(new(n), stat=state)
    if (state /= 0) stop 1
    first => old
    do k = 1, 3
      do i = 1, n
        new(i) = old(i) * old(mod(i, n) + 1) + 0.5d0 * x(i)
      end do
      if (associated(new, first)) new = new * x(1)
      other => old
      old => new
      new => other
    end do
    buffers = sum(old)
    deallocate(old, new)
  end function

  subroutine fill(c, x)
    type(cloud), intent(inout) :: c
    real(8), intent(in) :: x(:)
    integer :: i, j
    do i = 1, c%n
      do j = 1, 3
        c%p(i)%a(j) = x(i) * j
      end do
      c%p(i)%k = mod(i, c%n) + 1
      c%p(i)%m = x(i)
    end do
  end subroutine
  real(8) function points(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    type(cloud) :: c
    integer :: i
    c%n = n
    allocate(c%p(n))
    call fill(c, x)
    points = 0
    do i = 1, n
      points = points + c%p(i)%m * sum(c%p(i)%a**2) * c%p(c%p(i)%k)%m
    end do
    deallocate(c%p)
  end function

  real(8) function jagged(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    type(row) :: some(10)
    type(row), allocatable :: all(:)
    integer :: i
    allocate(all(n))
    do i = 1, n
      allocate(all(i)%v(i))
      all(i)%v = x(i)**2
      if (mod(i, 3) /= 0) some(i)%v => all(i)%v
    end do
    jagged = 0
    do i = 1, n
      if (associated(some(i)%v, all(i)%v)) jagged = jagged + sum(some(i)%v) * x(i)
    end do
    do i = 1, n
      deallocate(all(i)%v)
    end do
  end function

  function behind(a, k) result(p)
    real(8), intent(in), target :: a(:)
    integer, intent(in) :: k
    real(8), pointer :: p(:)
    p => a(k:)
  end function
  real(8) function parts(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in), target :: x(n)
    real(8), pointer :: square(:,:), line(:), all(:), diagonal(:), view(:)
    integer :: i
    allocate(all(n * n))
    square(1:n, 1:n) => all
    do i = 1, n
      view => behind(x, i)
      square(:, i) = x * view(1)
    end do
    line => square(2, :)
    diagonal => all(1::n+1)
    diagonal = diagonal * line
    parts = sum(all**2) + sum(line)
    deallocate(all)
  end function
end module
