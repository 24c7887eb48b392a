! Functions with procedures inside that they hand on, with array constructors, and that ask for types.
module procedures
  use iso_c_binding
  implicit none
  abstract interface
    real(8) function of_number(x)
      real(8), intent(in) :: x
    end function
  end interface
  type law
    integer :: kind = 0
  end type
  type, extends(law) :: power
    real(8) :: by = 1
  end type
  type, extends(power) :: shifted
    real(8) :: shift = 0
  end type
contains
  recursive real(8) function adapt(g, a, b, n) result(r)
    procedure(of_number) :: g
    real(8), intent(in) :: a, b
    integer, intent(in) :: n
    if (n == 0) then
      r = g((a + b)/2)*(b - a)
    else
      r = adapt(g, a, (a + b)/2, n - 1) + adapt(g, (a + b)/2, b, n - 1)
    end if
  end function
  real(8) function root(g, slope, start) result(x)
    procedure(of_number) :: g, slope
    real(8), intent(in) :: start
    integer :: i
    x = start
    do i = 1, 12
      x = x - g(x)/slope(x)
    end do
    x = x + 1d-3*adapt(slope, 0d0, x, 3)
  end function
  recursive real(8) function nested(p, n, depth) result(r)
    integer, intent(in) :: n, depth
    real(8), intent(in) :: p(n)
    r = 0
    if (depth > 0) r = nested([adapt(decay, 0d0, 1d0, 2), p(2:n)], n, depth - 1)
    r = r + adapt(decay, 0d0, 2d0, 4) + root(level, slope, 1d0)
  contains
    real(8) function decay(x)
      real(8), intent(in) :: x
      decay = exp(-p(1)*x)*p(2)
    end function
    real(8) function level(x)
      real(8), intent(in) :: x
      level = x*x - p(3) - p(1)
    end function
    real(8) function slope(x)
      real(8), intent(in) :: x
      slope = 2*x
    end function
  end function
  real(8) function inside(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    inside = nested(x, n, 2)
  end function

  real(8) function constructed(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    real(8) :: r(3), v(3), y(6), z(7), c
    real(8), allocatable :: w(:), q(:)
    integer :: i
    r = x(1:3)
    v = x(4:6)
    c = sum(r*v)
    y = [c*r + v, r - c*v]
    z = [y, c]
    w = [y(1:n/2), x(6), (x(i)*x(i + 1), i=1, n - 1), doubled(y, n/2)]
    q = [real(8) ::]
    do i = 1, n
      q = [q, w(i)*x(i)]
    end do
    constructed = sum(y**2) + sum(z**3) + sum(w*[(real(i, 8), i=1, size(w))]) + sum(q**2)
  end function
  function doubled(y, n) result(p)
    integer, intent(in) :: n
    real(8), intent(in) :: y(6)
    real(8), allocatable :: p(:)
    p = y(n:6)*2
  end function

  real(8) function apply(of, x) result(y)
    class(law), intent(in) :: of
    real(8), intent(in) :: x
    character(len=40) :: text
    select type (of)
    class is (shifted)
      y = (x + of%shift)**2*of%by
    class is (power)
      y = x**3*of%by
    class default
      text = 'kind'
      if (of%kind > 5) write(*, '(a)') trim(text)//' is not known'
      y = sin(x)
    end select
  end function
  real(8) function asked(x, n) bind(c)
    integer(c_int), value :: n
    real(8), intent(in) :: x(n)
    type(law) :: plain
    type(power) :: cubed
    type(shifted) :: squared
    integer :: i
    cubed%by = x(1)
    squared%by = x(2)
    squared%shift = x(3)
    asked = 0
    do i = 1, n
      asked = asked + apply(plain, x(i)) + apply(cubed, x(i)) + apply(squared, x(i))
    end do
  end function
end module
