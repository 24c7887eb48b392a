; Nodes of red-black trees: a colour (red is 0, black is 1), and at bytes 8, 16, 24 the addresses of parent, left
; child and right child. A tree has a header, a red node above its root: its parent is the root, its left child the
; first node, its right child the last node. Colours have the front end's TBAA tag, because the container templates
; access colours, too.

!0 = !{!1, !1, i64 0}
!1 = !{!"_ZTSSt14_Rb_tree_color", !2, i64 0}
!2 = !{!"omnipotent char", !3, i64 0}
!3 = !{!"Simple C++ TBAA"}

define internal i1 @__gr_tree_is_red(ptr %x) alwaysinline {
entry:
  %some = icmp ne ptr %x, null
  br i1 %some, label %node, label %done
node:
  %colour = load i32, ptr %x, !tbaa !0
  %red = icmp eq i32 %colour, 0
  br label %done
done:
  %answer = phi i1 [ false, %entry ], [ %red, %node ]
  ret i1 %answer
}

; Replaces a node under its parent by another node or null.
define internal void @__gr_tree_put(ptr %old, ptr %new, ptr %head) alwaysinline {
entry:
  %up.place = getelementptr i8, ptr %old, i64 8
  %up = load ptr, ptr %up.place
  %is.root = icmp eq ptr %up, %head
  br i1 %is.root, label %root, label %inner
root:
  %root.place = getelementptr i8, ptr %head, i64 8
  store ptr %new, ptr %root.place
  br label %below
inner:
  %left.place = getelementptr i8, ptr %up, i64 16
  %left.child = load ptr, ptr %left.place
  %is.left = icmp eq ptr %left.child, %old
  br i1 %is.left, label %left, label %right
left:
  store ptr %new, ptr %left.place
  br label %below
right:
  %right.place = getelementptr i8, ptr %up, i64 24
  store ptr %new, ptr %right.place
  br label %below
below:
  %some = icmp ne ptr %new, null
  br i1 %some, label %back, label %done
back:
  %back.place = getelementptr i8, ptr %new, i64 8
  store ptr %up, ptr %back.place
  br label %done
done:
  ret void
}

; Returns the predecessor of a node; of the header, the last node.
define ptr @__gr_tree_before(ptr %x) alwaysinline {
entry:
  %red = call i1 @__gr_tree_is_red(ptr %x)
  br i1 %red, label %maybe, label %node
maybe:
  %up.place = getelementptr i8, ptr %x, i64 8
  %up = load ptr, ptr %up.place
  %back.place = getelementptr i8, ptr %up, i64 8
  %back = load ptr, ptr %back.place
  %is.head = icmp eq ptr %back, %x
  br i1 %is.head, label %head, label %node
head:
  %last.place = getelementptr i8, ptr %x, i64 24
  %last = load ptr, ptr %last.place
  ret ptr %last
node:
  %found = call ptr @__gr_tree_next_left(ptr %x)
  ret ptr %found
}

; Returns the successor of a node; of the last node, the header.
define ptr @__gr_tree_after(ptr %x) alwaysinline {
  %found = call ptr @__gr_tree_next_right(ptr %x)
  ret ptr %found
}

; Inserts a new node under another node, or, on the left, under the header of an empty tree.
define void @__gr_tree_insert(i1 zeroext %on.left, ptr %new, ptr %under, ptr %head) alwaysinline {
entry:
  store i32 0, ptr %new, !tbaa !0
  %new.up = getelementptr i8, ptr %new, i64 8
  store ptr %under, ptr %new.up
  %new.left = getelementptr i8, ptr %new, i64 16
  store ptr null, ptr %new.left
  %new.right = getelementptr i8, ptr %new, i64 24
  store ptr null, ptr %new.right
  %root.place = getelementptr i8, ptr %head, i64 8
  %first.place = getelementptr i8, ptr %head, i64 16
  %last.place = getelementptr i8, ptr %head, i64 24
  br i1 %on.left, label %left, label %right
left:
  %first = load ptr, ptr %first.place
  %left.place = getelementptr i8, ptr %under, i64 16
  store ptr %new, ptr %left.place
  %is.root = icmp eq ptr %under, %head
  br i1 %is.root, label %root, label %left.inner
root:
  store ptr %new, ptr %root.place
  store ptr %new, ptr %last.place
  br label %mend
left.inner:
  %is.first = icmp eq ptr %under, %first
  br i1 %is.first, label %new.first, label %mend
new.first:
  store ptr %new, ptr %first.place
  br label %mend
right:
  %right.place = getelementptr i8, ptr %under, i64 24
  store ptr %new, ptr %right.place
  %last = load ptr, ptr %last.place
  %is.last = icmp eq ptr %under, %last
  br i1 %is.last, label %new.last, label %mend
new.last:
  store ptr %new, ptr %last.place
  br label %mend
mend:
  %x = phi ptr [ %new, %root ], [ %new, %left.inner ], [ %new, %new.first ], [ %new, %right ], [ %new, %new.last ], [ %next, %turned ]
  %up.place = getelementptr i8, ptr %x, i64 8
  %up = load ptr, ptr %up.place
  %at.top = icmp eq ptr %up, %head
  br i1 %at.top, label %done, label %inner
inner:
  %colour = load i32, ptr %up, !tbaa !0
  %red = icmp eq i32 %colour, 0
  br i1 %red, label %two.red, label %done
two.red:
  %top.place = getelementptr i8, ptr %up, i64 8
  %top = load ptr, ptr %top.place
  %child.place = getelementptr i8, ptr %top, i64 16
  %child = load ptr, ptr %child.place
  %is.left = icmp eq ptr %child, %up
  br i1 %is.left, label %mend.left, label %mend.right
mend.left:
  %next.left = call ptr @__gr_tree_mend_red_left(ptr %x, ptr %up, ptr %top, ptr %head)
  br label %mended
mend.right:
  %next.right = call ptr @__gr_tree_mend_red_right(ptr %x, ptr %up, ptr %top, ptr %head)
  br label %mended
mended:
  %next = phi ptr [ %next.left, %mend.left ], [ %next.right, %mend.right ]
  %more = icmp ne ptr %next, null
  br i1 %more, label %turned, label %done
turned:
  br label %mend
done:
  %root.now = load ptr, ptr %root.place
  store i32 1, ptr %root.now, !tbaa !0
  ret void
}

; Removes a node from its tree, and returns the node.
define ptr @__gr_tree_erase(ptr %gone, ptr %head) alwaysinline {
entry:
  call void @__gr_tree_shrink_left(ptr %gone, ptr %head)
  call void @__gr_tree_shrink_right(ptr %gone, ptr %head)
  %left.place = getelementptr i8, ptr %gone, i64 16
  %left = load ptr, ptr %left.place
  %right.place = getelementptr i8, ptr %gone, i64 24
  %right = load ptr, ptr %right.place
  %gone.place = getelementptr i8, ptr %gone, i64 8
  %some.left = icmp ne ptr %left, null
  %some.right = icmp ne ptr %right, null
  %both = and i1 %some.left, %some.right
  br i1 %both, label %two, label %one
one:
  %only = select i1 %some.left, ptr %left, ptr %right
  %one.up = load ptr, ptr %gone.place
  %one.colour = load i32, ptr %gone, !tbaa !0
  call void @__gr_tree_put(ptr %gone, ptr %only, ptr %head)
  br label %taken
two:
  %heir = call ptr @__gr_tree_outermost_left(ptr %right)
  %two.colour = load i32, ptr %heir, !tbaa !0
  %heir.right = getelementptr i8, ptr %heir, i64 24
  %below = load ptr, ptr %heir.right
  %heir.place = getelementptr i8, ptr %heir, i64 8
  %heir.up = load ptr, ptr %heir.place
  %is.child = icmp eq ptr %heir, %right
  br i1 %is.child, label %inherit, label %apart
apart:
  call void @__gr_tree_put(ptr %heir, ptr %below, ptr %head)
  store ptr %right, ptr %heir.right
  %right.up = getelementptr i8, ptr %right, i64 8
  store ptr %heir, ptr %right.up
  br label %inherit
inherit:
  %two.up = phi ptr [ %heir, %two ], [ %heir.up, %apart ]
  call void @__gr_tree_put(ptr %gone, ptr %heir, ptr %head)
  %heir.left = getelementptr i8, ptr %heir, i64 16
  store ptr %left, ptr %heir.left
  %left.up = getelementptr i8, ptr %left, i64 8
  store ptr %heir, ptr %left.up
  %colour = load i32, ptr %gone, !tbaa !0
  store i32 %colour, ptr %heir, !tbaa !0
  br label %taken
taken:
  %first.x = phi ptr [ %only, %one ], [ %below, %inherit ]
  %first.up = phi ptr [ %one.up, %one ], [ %two.up, %inherit ]
  %colour.gone = phi i32 [ %one.colour, %one ], [ %two.colour, %inherit ]
  %was.red = icmp eq i32 %colour.gone, 0
  br i1 %was.red, label %done, label %mend
mend:
  %x = phi ptr [ %first.x, %taken ], [ %next, %further ]
  %up = phi ptr [ %first.up, %taken ], [ %next.up, %further ]
  %at.top = icmp eq ptr %up, %head
  br i1 %at.top, label %end, label %inner
inner:
  %red = call i1 @__gr_tree_is_red(ptr %x)
  br i1 %red, label %end, label %lacking
lacking:
  %child.place = getelementptr i8, ptr %up, i64 16
  %child = load ptr, ptr %child.place
  %is.left = icmp eq ptr %child, %x
  br i1 %is.left, label %mend.left, label %mend.right
mend.left:
  %next.left = call ptr @__gr_tree_mend_black_left(ptr %up, ptr %head)
  br label %mended
mend.right:
  %next.right = call ptr @__gr_tree_mend_black_right(ptr %up, ptr %head)
  br label %mended
mended:
  %next = phi ptr [ %next.left, %mend.left ], [ %next.right, %mend.right ]
  %more = icmp ne ptr %next, null
  br i1 %more, label %further, label %done
further:
  %next.place = getelementptr i8, ptr %next, i64 8
  %next.up = load ptr, ptr %next.place
  br label %mend
end:
  %some = icmp ne ptr %x, null
  br i1 %some, label %blacken, label %done
blacken:
  store i32 1, ptr %x, !tbaa !0
  br label %done
done:
  ret ptr %gone
}
