! Variables of derived types with allocatable components, made by functions and assigned as a whole.
module curves
  use iso_c_binding
  implicit none
  type curve
    integer :: n = 0
    real(8) :: scale = 1
    real(8), allocatable :: c(:)
    real(8), allocatable :: m(:, :)
    integer, allocatable :: k(:)
  end type
  type pair
    real(8) :: w
    type(curve) :: a, b
  end type
  interface curve
    module procedure make
  end interface
contains
  function make(x) result(me)
    real(8), intent(in) :: x(:)
    type(curve) :: me
    me%n = size(x)
    me%scale = x(1)
    allocate (me%c(0:size(x) - 1))
    me%c = x**2
    if (size(x) > 3) then
      me%m = reshape([x, x], [size(x), 2])
      me%k = [1, 2]
    end if
  end function
  real(8) function total(of) result(t)
    type(curve), intent(in) :: of
    integer :: i
    t = of%n*of%scale
    if (allocated(of%c)) then
      do i = lbound(of%c, 1), ubound(of%c, 1)
        t = t + of%c(i)*(i + 1)
      end do
    end if
    if (allocated(of%m)) t = t + sum(of%m*of%m)
    if (allocated(of%k)) t = t + sum(of%k)
  end function
  real(8) function held(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    type(curve) :: a, b, c
    type(pair) :: p, q
    a = curve(x)
    b = a
    b%c = b%c*x(2)
    c = curve(x(1:3))
    held = total(a) + 2*total(b) + 3*total(c)
    a = c
    p%w = x(3)
    p%a = a
    p%b = b
    q = p
    q%b%c(1) = x(1)*x(2)
    b = b
    held = held + total(a) + total(q%a)*q%w + total(q%b) + total(p%b)*total(b)
  end function
  ! Arrays of such types, of constant and of variable extents, and their elements.
  real(8) function several(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    type(curve) :: u(3), v(3), g(n), h(n)
    integer :: i
    do i = 1, 3
      u(i)%c = x(i:n)
      u(i)%scale = x(i)
    end do
    v = u
    v(2)%c = v(2)%c*x(1)
    u = v
    several = 0
    do i = 1, 3
      several = several + sum(u(i)%c**2)*v(i)%scale*i + v(i)%c(2)
    end do
    do i = 1, n, 2
      g(i) = curve(x(1:i))
    end do
    h = g
    h(2) = g(3)
    g(3) = g(1)
    do i = 1, n
      if (allocated(h(i)%c)) several = several + total(h(i))*i
    end do
    several = several + sum(g(3)%c)
  end function
end module
