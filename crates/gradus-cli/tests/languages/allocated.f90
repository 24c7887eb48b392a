! Allocatable arrays of derived types, and statements that give their state, differentiated in both modes.
include 'gradus.f90'
module allocated_types
  implicit none
  type :: part
    real(8) :: p(3), v
    integer :: kind
  end type
  type :: begun
    real(8) :: by = 2, of
    integer :: id = 7
    type(part) :: within
  end type
  type :: mesh
    real(8), allocatable :: x(:)
    integer, allocatable :: order(:, :)
    real(8) :: scale = 0.5d0
  end type
  type(part), allocatable :: kept(:)
contains
  ! By its bounds, read behind its end by what a move leaves, and freed at the end.
  real(8) function parts(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    type(part), allocatable :: u(:), w(:, :)
    integer :: i
    allocate(u(0:n-1), w(2, n))
    do i = 1, n
      u(i-1)%p = [x(i), x(i)**2, 1.0d0]
      u(i-1)%kind = mod(i, 2)
      u(i-1)%v = 0.1d0 * i
      w(1, i) = u(i-1)
      w(2, i) = u(0)
    end do
    parts = 0
    do i = 1, n - 1
      parts = parts + u(i)%p(1) * u(i-1)%p(2) * u(i)%kind + w(1, i)%v * w(2, i)%p(1)**3
    end do
    deallocate(u)
    if (.not. allocated(u)) allocate(u(2))
    u%v = x(2)
    parts = parts + u(1)%v * u(2)%v * size(u)
  end function

  ! What elements begin with, whatever the memory held before.
  real(8) function beginnings(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    type(begun), allocatable :: u(:)
    integer :: i, k
    beginnings = 0
    do k = 1, 3
      allocate(u(n))
      do i = 1, n
        u(i)%of = x(i) * u(i)%by
        u(i)%by = u(i)%by + x(i) * k
        u(i)%id = u(i)%id + 1
      end do
      do i = 1, n
        beginnings = beginnings + u(i)%of * u(i)%by * u(i)%id
      end do
      deallocate(u)
    end do
  end function

  ! States: of what has memory already, and of what has none.
  real(8) function states(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    type(begun), allocatable :: u(:)
    real(8), allocatable :: a(:)
    integer :: first, second, third, fourth
    allocate(a(n), u(n), stat=first)
    a = x**2
    u(2)%by = x(2)
    allocate(u(n + 1), stat=second)
    deallocate(a, stat=third)
    deallocate(a, stat=fourth)
    allocate(a, source=x, stat=third)
    states = sum(a * u%by) * size(u) + first + 10 * second + 100 * third + 1000 * fourth
  end function

  ! With another variable's bounds, or contents, and moved.
  real(8) function sources(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    type(part), allocatable :: u(:), v(:), w(:), one(:)
    type(begun), allocatable :: b(:), c(:)
    integer :: i
    allocate(u(-1:n-2))
    do i = 1, n
      u(i-2)%p = x(i) * [1, 2, 3]
      u(i-2)%v = i
      u(i-2)%kind = i
    end do
    allocate(v, source=u)
    allocate(w, mold=u)
    allocate(one(3), source=u(0))
    w = v
    u(1)%p(1) = 0
    call swap(u, w)
    allocate(b(2:4))
    allocate(c, mold=b)
    sources = c(3)%by * x(1)
    do i = -1, n - 2
      sources = sources + u(i)%p(1) * v(i)%p(2) * w(i)%v + w(i)%p(1) * one(2)%p(3) * u(i)%kind
    end do
  end function

  subroutine swap(a, b)
    type(part), allocatable, intent(inout) :: a(:), b(:)
    type(part), allocatable :: aside(:)
    call move_alloc(a, aside)
    call move_alloc(b, a)
    call move_alloc(aside, b)
  end subroutine

  ! What one variable had is another's: what was written by one name is read by the other.
  real(8) function moves(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    real(8), allocatable :: a(:), b(:)
    integer :: i
    allocate(a(n))
    do i = 1, n
      a(i) = 0.5d0
    end do
    do i = 1, n, 2
      a(i) = a(i) * x(1)
    end do
    call move_alloc(a, b)
    moves = b(3) * x(2)
  end function

  ! In subroutines, and in a variable of the module.
  real(8) function dummies(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    type(begun), allocatable :: u(:)
    integer :: i, state
    dummies = 0
    do i = 1, 2
      call make(n, u)
      u%of = x * i
      call more(n, u, state)
      dummies = dummies + u(2)%of * u(1)%by * u(n)%of + state
    end do
    allocate(kept(n))
    kept%v = x
    call reverse(n)
    dummies = dummies + kept(1)%v * kept(2)%v**2
    deallocate(kept)
  end function

  subroutine make(n, u)
    integer, intent(in) :: n
    type(begun), allocatable, intent(out) :: u(:)
    allocate(u(n))
  end subroutine

  subroutine more(n, u, state)
    integer, intent(in) :: n
    type(begun), allocatable, intent(inout) :: u(:)
    integer, intent(out) :: state
    allocate(u(n), stat=state)
  end subroutine

  subroutine reverse(n)
    integer, intent(in) :: n
    type(part), allocatable :: u(:)
    integer :: i
    allocate(u(n))
    do i = 1, n
      u(i) = kept(n + 1 - i)
    end do
    call move_alloc(u, kept)
  end subroutine

  ! Components that are allocated one by one, in variables and in the elements of arrays.
  real(8) function meshes(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    type(mesh) :: one, two(2)
    type(mesh), allocatable :: all(:), rest(:)
    integer :: i, k
    allocate(one%x(n), two(2)%x(n))
    one%x = x * one%scale
    two(2)%x = one%x**2
    allocate(all(3))
    do i = 1, 3, 2
      allocate(all(i)%x(n), all(i)%order(1, n))
      all(i)%x = two(2)%x * i
      all(i)%order(1, :) = [(n + 1 - k, k = 1, n)]
      all(i)%scale = all(i)%scale * x(1)
    end do
    call move_alloc(all, rest)
    allocate(all(1))
    all(1)%x = x
    meshes = sum(all(1)%x * one%x)
    do i = 1, 3
      if (allocated(rest(i)%x)) meshes = meshes + rest(i)%x(rest(i)%order(1, 2)) * rest(i)%scale
    end do
    call move_alloc(all, rest)
    meshes = meshes + rest(1)%x(2) * size(rest)
  end function
end module
program main
  use gradus
  use allocated_types
  implicit none
  external :: gradus_vjp
  real(8), external :: gradus_jvp
  integer, parameter :: n = 7
  real(8) :: x(n), d(n), dx(n), step, by, forward
  integer :: i
  x = [(1 + sin(0.7d0 * i), i = 1, n)]
  d = [(cos(1.3d0 * i), i = 1, n)]
  step = 1d-6

  by = (parts(n, x + step * d) - parts(n, x - step * d)) / (2 * step)
  dx = 0
  forward = gradus_jvp(parts, gradus_const, n, gradus_dup, x, d)
  call gradus_vjp(parts, gradus_const, n, gradus_dup, x, dx)
  call compare(parts(n, x))
  by = (beginnings(n, x + step * d) - beginnings(n, x - step * d)) / (2 * step)
  dx = 0
  forward = gradus_jvp(beginnings, gradus_const, n, gradus_dup, x, d)
  call gradus_vjp(beginnings, gradus_const, n, gradus_dup, x, dx)
  call compare(beginnings(n, x))
  by = (states(n, x + step * d) - states(n, x - step * d)) / (2 * step)
  dx = 0
  forward = gradus_jvp(states, gradus_const, n, gradus_dup, x, d)
  call gradus_vjp(states, gradus_const, n, gradus_dup, x, dx)
  call compare(states(n, x))
  by = (sources(n, x + step * d) - sources(n, x - step * d)) / (2 * step)
  dx = 0
  forward = gradus_jvp(sources, gradus_const, n, gradus_dup, x, d)
  call gradus_vjp(sources, gradus_const, n, gradus_dup, x, dx)
  call compare(sources(n, x))
  by = (moves(n, x + step * d) - moves(n, x - step * d)) / (2 * step)
  dx = 0
  forward = gradus_jvp(moves, gradus_const, n, gradus_dup, x, d)
  call gradus_vjp(moves, gradus_const, n, gradus_dup, x, dx)
  call compare(moves(n, x))
  by = (dummies(n, x + step * d) - dummies(n, x - step * d)) / (2 * step)
  dx = 0
  forward = gradus_jvp(dummies, gradus_const, n, gradus_dup, x, d)
  call gradus_vjp(dummies, gradus_const, n, gradus_dup, x, dx)
  call compare(dummies(n, x))
  by = (meshes(n, x + step * d) - meshes(n, x - step * d)) / (2 * step)
  dx = 0
  forward = gradus_jvp(meshes, gradus_const, n, gradus_dup, x, d)
  call gradus_vjp(meshes, gradus_const, n, gradus_dup, x, dx)
  call compare(meshes(n, x))
contains
  subroutine compare(value)
    real(8), intent(in) :: value
    print '(f12.4, 2l2)', value, abs(forward - by) < 1d-6 * abs(by), &
      abs(dot_product(dx, d) - forward) < 1d-10 * abs(by)
  end subroutine
end program
