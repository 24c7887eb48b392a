! Arrays that are allocated as programs run: assigned to, moved, extended, overlapping.
module state
  use iso_c_binding
  implicit none
  real(c_double), allocatable :: kept(:)
  type cell
    real(c_double) :: width
    real(c_double), allocatable :: u(:, :)
    integer, allocatable :: order(:)
  end type
contains
  pure function spread2(a, b) result(c)
    real(c_double), intent(in) :: a(:), b(:)
    real(c_double) :: c(size(a), 2)
    c(:, 1) = a
    c(:, 2) = b
  end function

  ! Allocated by an assignment, again by one of another shape, and kept by one of the same.
  real(c_double) function shapes(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    real(c_double), allocatable :: a(:), b(:)
    a = x
    b = a * a + 1
    a = matmul(spread2(x, b), [1.0_c_double, 0.5_c_double])
    a = a * 2
    b = a(2:n:2)
    shapes = sum(a * a) + dot_product(b, x(:size(b))) + size(a) + lbound(b, 1)
  end function

  ! The right side overlaps the left one.
  real(c_double) function overlaps(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(inout) :: x(n)
    real(c_double), allocatable :: a(:)
    integer :: i
    a = x
    a = a(n:1:-1)
    a(2:n) = a(1:n-1)
    a = a(2)
    x = x(n:1:-1) * a
    overlaps = 0
    do i = 1, n
      overlaps = overlaps + i * x(i)
    end do
    x = x(n:1:-1) / a
  end function

  subroutine extend(v, by)
    real(c_double), allocatable, intent(inout) :: v(:)
    real(c_double), intent(in) :: by
    real(c_double), allocatable :: longer(:)
    allocate(longer(size(v) + 1))
    longer(:size(v)) = v
    longer(size(v) + 1) = by * sum(v)
    call move_alloc(longer, v)
  end subroutine

  ! One by one longer, by way of a variable of the module.
  real(c_double) function grown(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    integer :: i
    kept = x(1:2)
    do i = 3, n
      call extend(kept, x(i))
    end do
    grown = norm2(kept)
    deallocate(kept)
  end function

  ! Components, of two dimensions, with indices beside.
  real(c_double) function cells(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    type(cell) :: c
    integer :: i
    c%width = x(1)
    c%u = spread2(x, x * x)
    c%order = [(n + 1 - i, i = 1, n)]
    c%u = c%u * c%width
    c%u = transpose(c%u)
    cells = 0
    do i = 1, n
      cells = cells + c%u(1, c%order(i)) * c%u(2, i)
    end do
  end function

  ! Complex numbers.
  real(c_double) function waves(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    complex(c_double), allocatable :: w(:)
    w = cmplx(x, 2 * x, c_double)
    w = w * w(1)
    w = w(n:1:-1)
    waves = real(sum(w * w), c_double) + aimag(w(2))
  end function

  ! Bounds are those of the right side, or stay where its shape is that of the left one.
  real(c_double) function bounds(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(0:n-1)
    real(c_double), allocatable :: a(:), b(:), c(:), d(:), none(:)
    a = x
    b = x(2:5)
    allocate(c(-3:n-4), d(7:9))
    c = x
    d = x
    none = x(3:2)
    bounds = x(lbound(a, 1)) + 10 * x(lbound(b, 1) + 1) + 100 * x(lbound(c, 1) + 5) + 1000 * x(lbound(d, 1) + 3)
    bounds = bounds + a(1) * c(ubound(c, 1)) * d(ubound(d, 1)) + size(none)
  end function

  ! Allocated with what another variable holds.
  real(c_double) function sources(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    real(c_double), allocatable :: a(:), b(:, :), c(:), d(:)
    allocate(a, source=x)
    allocate(b(2, n), source=x(2))
    allocate(c(0:3), source=a(2:5))
    c = c * 2
    allocate(d, source=c)
    sources = sum(a * a) + sum(b) * b(2, n) + c(1) * c(3) + d(2) * (lbound(d, 1) + 1)
  end function

  ! Elements side by side, whatever they were: copied in and, where they change, back.
  subroutine smooth(v, m, by)
    integer, intent(in) :: m
    real(c_double), intent(inout) :: v(m)
    real(c_double), intent(in) :: by(m)
    integer :: i
    do i = 2, m
      v(i) = v(i) + by(i) * v(i - 1) + spacing(v(i - 1))
    end do
  end subroutine

  subroutine smooth_any(v, by)
    real(c_double), intent(inout) :: v(:)
    real(c_double), intent(in) :: by(:)
    call smooth(v, size(v), by)
  end subroutine

  real(c_double) function strides(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    real(c_double), allocatable :: a(:), b(:, :)
    a = x
    b = spread2(x, x * x)
    call smooth_any(a(n:1:-2), x(1:n:2))
    call smooth_any(a, x)
    call smooth_any(b(2, :), b(1, :))
    strides = dot_product(a, a) + sum(b * b)
  end function

  ! Remainders.
  real(c_double) function rests(x, n) bind(c)
    integer(c_int), value :: n
    real(c_double), intent(in) :: x(n)
    integer :: i
    rests = 0
    do i = 1, n
      rests = rests + i * mod(10 * x(i), 1.7_c_double) + modulo(-7 * x(i) * x(i), 2.3_c_double)
    end do
  end function
end module
