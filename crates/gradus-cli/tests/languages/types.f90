! Derived types with allocatable components, type-bound procedures, inheritance and variables that are
! destroyed at the end of their scope.
module shapes
  use iso_c_binding
  implicit none

  type, abstract :: curve
    real(8) :: weight = 1.0d0
  contains
    procedure(value_of), deferred :: at
  end type

  abstract interface
    function value_of(me, t) result(v)
      import :: curve
      class(curve), intent(in) :: me
      real(8), intent(in) :: t
      real(8) :: v
    end function
  end interface

  type, extends(curve) :: polynomial
    integer :: degree = -1
    real(8), allocatable :: c(:)
  contains
    procedure :: at => polynomial_at
    procedure :: set => polynomial_set
  end type

  type, extends(curve) :: wave
    real(8) :: frequency
  contains
    procedure :: at => wave_at
  end type

  type :: pair
    type(polynomial) :: first
    integer, allocatable :: order(:)
    real(8), allocatable :: table(:, :)
  end type

contains

  function polynomial_at(me, t) result(v)
    class(polynomial), intent(in) :: me
    real(8), intent(in) :: t
    real(8) :: v
    integer :: i
    v = 0
    do i = me%degree, 0, -1
      v = v * t + me%c(i + 1)
    end do
    v = v * me%weight
  end function

  subroutine polynomial_set(me, c)
    class(polynomial), intent(inout) :: me
    real(8), intent(in) :: c(:)
    integer :: i
    if (allocated(me%c)) deallocate(me%c)
    allocate(me%c(size(c)))
    me%degree = size(c) - 1
    do i = 1, size(c)
      me%c(i) = c(i) * c(i)
    end do
  end subroutine

  function wave_at(me, t) result(v)
    class(wave), intent(in) :: me
    real(8), intent(in) :: t
    real(8) :: v
    v = me%weight * sin(me%frequency * t)
  end function

  function twice(of, t) result(v)
    class(curve), intent(in) :: of
    real(8), intent(in) :: t
    real(8) :: v
    v = of%at(of%at(t))
  end function

  function inner(x, n, k) result(s)
    integer, intent(in) :: n, k
    real(8), intent(in) :: x(n)
    real(8) :: s
    type(pair) :: p
    integer :: i, j
    call p%first%set(x(1:k))
    allocate(p%order(k), p%table(k, n))
    do i = 1, k
      p%order(i) = k + 1 - i
    end do
    do j = 1, n
      do i = 1, k
        p%table(i, j) = x(p%order(i)) * x(j) + j
      end do
    end do
    s = 0
    do j = 1, n
      do i = 1, k
        s = s + p%table(i, j) * p%first%at(x(i) * 0.5d0)
      end do
    end do
  end function

  function total(x, n) bind(c, name="total") result(s)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    real(c_double) :: s
    type(polynomial) :: p
    type(wave) :: w
    integer :: k
    s = 0
    call p%set(x)
    w%frequency = x(2)
    do k = 1, n
      s = s + inner(x, n, k) * 1.0d-2
      if (mod(k, 2) == 0) then
        s = s + twice(p, x(k) * 0.1d0)
      else
        s = s + twice(w, x(k))
      end if
    end do
  end function
end module
