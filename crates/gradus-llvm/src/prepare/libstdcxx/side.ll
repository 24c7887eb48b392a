; Operations on one side of a tree, and mirrored on the other: SIDE is `left` or `right`, OTHER the opposite, and NEAR
; and FAR are the byte offsets of the children on both sides. The sides are no index, because a constant offset keeps
; the fields of a node apart in points-to analysis.

; Returns the last node on the side in a node's subtree.
define internal ptr @__gr_tree_outermost_SIDE(ptr %of) alwaysinline {
entry:
  br label %at
at:
  %x = phi ptr [ %of, %entry ], [ %below, %further ]
  %place = getelementptr i8, ptr %x, i64 NEAR
  %below = load ptr, ptr %place
  %more = icmp ne ptr %below, null
  br i1 %more, label %further, label %done
further:
  br label %at
done:
  ret ptr %x
}

; Returns the nearest node on the side; the header if there is none.
define internal ptr @__gr_tree_next_SIDE(ptr %of) alwaysinline {
entry:
  %place = getelementptr i8, ptr %of, i64 NEAR
  %below = load ptr, ptr %place
  %some = icmp ne ptr %below, null
  br i1 %some, label %down, label %climb
down:
  %found = call ptr @__gr_tree_outermost_OTHER(ptr %below)
  ret ptr %found
climb:
  %x = phi ptr [ %of, %entry ], [ %up, %further ]
  %up.place = getelementptr i8, ptr %x, i64 8
  %up = load ptr, ptr %up.place
  %back.place = getelementptr i8, ptr %up, i64 8
  %back = load ptr, ptr %back.place
  %is.root = icmp eq ptr %back, %x
  br i1 %is.root, label %done, label %inner
inner:
  %child.place = getelementptr i8, ptr %up, i64 NEAR
  %child = load ptr, ptr %child.place
  %is.child = icmp eq ptr %child, %x
  br i1 %is.child, label %further, label %done
further:
  br label %climb
done:
  ret ptr %up
}

; Rotates a node down to the side; its child on the other side moves up.
define internal void @__gr_tree_rotate_SIDE(ptr %x, ptr %head) alwaysinline {
entry:
  %far.place = getelementptr i8, ptr %x, i64 FAR
  %y = load ptr, ptr %far.place
  %near.place = getelementptr i8, ptr %y, i64 NEAR
  %inner = load ptr, ptr %near.place
  store ptr %inner, ptr %far.place
  %some = icmp ne ptr %inner, null
  br i1 %some, label %back, label %turn
back:
  %back.place = getelementptr i8, ptr %inner, i64 8
  store ptr %x, ptr %back.place
  br label %turn
turn:
  call void @__gr_tree_put(ptr %x, ptr %y, ptr %head)
  store ptr %x, ptr %near.place
  %up.place = getelementptr i8, ptr %x, i64 8
  store ptr %y, ptr %up.place
  ret void
}

; Fixes a red child of a red parent on this side of the grandparent; returns the node to continue at, or null.
define internal ptr @__gr_tree_mend_red_SIDE(ptr %x, ptr %up, ptr %top, ptr %head) alwaysinline {
entry:
  %uncle.place = getelementptr i8, ptr %top, i64 FAR
  %uncle = load ptr, ptr %uncle.place
  %red = call i1 @__gr_tree_is_red(ptr %uncle)
  br i1 %red, label %recolour, label %turn
recolour:
  store i32 1, ptr %up, !tbaa !0
  store i32 1, ptr %uncle, !tbaa !0
  store i32 0, ptr %top, !tbaa !0
  ret ptr %top
turn:
  %inner.place = getelementptr i8, ptr %up, i64 FAR
  %inner = load ptr, ptr %inner.place
  %is.inner = icmp eq ptr %inner, %x
  br i1 %is.inner, label %straighten, label %raise
straighten:
  call void @__gr_tree_rotate_SIDE(ptr %up, ptr %head)
  br label %raise
raise:
  %middle = phi ptr [ %up, %turn ], [ %x, %straighten ]
  store i32 1, ptr %middle, !tbaa !0
  store i32 0, ptr %top, !tbaa !0
  call void @__gr_tree_rotate_OTHER(ptr %top, ptr %head)
  ret ptr null
}

; Fixes a missing black node on this side; returns the node to continue at, or null.
define internal ptr @__gr_tree_mend_black_SIDE(ptr %up, ptr %head) alwaysinline {
entry:
  %far.place = getelementptr i8, ptr %up, i64 FAR
  %beside = load ptr, ptr %far.place
  %red = call i1 @__gr_tree_is_red(ptr %beside)
  br i1 %red, label %lower, label %look
lower:
  store i32 1, ptr %beside, !tbaa !0
  store i32 0, ptr %up, !tbaa !0
  call void @__gr_tree_rotate_SIDE(ptr %up, ptr %head)
  %beside.now = load ptr, ptr %far.place
  br label %look
look:
  %other = phi ptr [ %beside, %entry ], [ %beside.now, %lower ]
  %inner.place = getelementptr i8, ptr %other, i64 NEAR
  %inner = load ptr, ptr %inner.place
  %outer.place = getelementptr i8, ptr %other, i64 FAR
  %outer = load ptr, ptr %outer.place
  %outer.red = call i1 @__gr_tree_is_red(ptr %outer)
  br i1 %outer.red, label %raise, label %ask
ask:
  %inner.red = call i1 @__gr_tree_is_red(ptr %inner)
  br i1 %inner.red, label %straighten, label %redden
redden:
  store i32 0, ptr %other, !tbaa !0
  ret ptr %up
straighten:
  store i32 1, ptr %inner, !tbaa !0
  store i32 0, ptr %other, !tbaa !0
  call void @__gr_tree_rotate_OTHER(ptr %other, ptr %head)
  br label %raise
raise:
  %middle = phi ptr [ %other, %look ], [ %inner, %straighten ]
  %far = phi ptr [ %outer, %look ], [ %other, %straighten ]
  %colour = load i32, ptr %up, !tbaa !0
  store i32 %colour, ptr %middle, !tbaa !0
  store i32 1, ptr %up, !tbaa !0
  store i32 1, ptr %far, !tbaa !0
  call void @__gr_tree_rotate_SIDE(ptr %up, ptr %head)
  ret ptr null
}

; Updates the header before the removal of the last node on this side.
define internal void @__gr_tree_shrink_SIDE(ptr %gone, ptr %head) alwaysinline {
entry:
  %end.place = getelementptr i8, ptr %head, i64 NEAR
  %end = load ptr, ptr %end.place
  %is.end = icmp eq ptr %end, %gone
  br i1 %is.end, label %find, label %done
find:
  %far.place = getelementptr i8, ptr %gone, i64 FAR
  %below = load ptr, ptr %far.place
  %some = icmp ne ptr %below, null
  br i1 %some, label %down, label %above
down:
  %found = call ptr @__gr_tree_outermost_SIDE(ptr %below)
  store ptr %found, ptr %end.place
  br label %done
above:
  %up.place = getelementptr i8, ptr %gone, i64 8
  %up = load ptr, ptr %up.place
  store ptr %up, ptr %end.place
  br label %done
done:
  ret void
}
