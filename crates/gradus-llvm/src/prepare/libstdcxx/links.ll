; Links of circular lists: the address of the next link, followed by the address of the previous link.

; Makes two links adjacent.
define internal void @__gr_links_join(ptr %first, ptr %second) alwaysinline {
  %back = getelementptr i8, ptr %second, i64 8
  store ptr %second, ptr %first
  store ptr %first, ptr %back
  ret void
}

; Inserts a link in front of another link.
define void @__gr_links_hook(ptr %link, ptr %at) alwaysinline {
  %place = getelementptr i8, ptr %at, i64 8
  %before = load ptr, ptr %place
  call void @__gr_links_join(ptr %before, ptr %link)
  call void @__gr_links_join(ptr %link, ptr %at)
  ret void
}

; Removes a link from its list.
define void @__gr_links_unhook(ptr %link) alwaysinline {
  %place = getelementptr i8, ptr %link, i64 8
  %before = load ptr, ptr %place
  %after = load ptr, ptr %link
  call void @__gr_links_join(ptr %before, ptr %after)
  ret void
}

; Moves the links from `first` up to the link before `end` in front of another link.
define void @__gr_links_transfer(ptr %at, ptr %first, ptr %end) alwaysinline {
entry:
  %none = icmp eq ptr %at, %end
  br i1 %none, label %done, label %some
some:
  %end.place = getelementptr i8, ptr %end, i64 8
  %last = load ptr, ptr %end.place
  %first.place = getelementptr i8, ptr %first, i64 8
  %left = load ptr, ptr %first.place
  call void @__gr_links_join(ptr %left, ptr %end)
  %at.place = getelementptr i8, ptr %at, i64 8
  %before = load ptr, ptr %at.place
  call void @__gr_links_join(ptr %before, ptr %first)
  call void @__gr_links_join(ptr %last, ptr %at)
  br label %done
done:
  ret void
}

; Moves the list from `first` to `last` to a header; the header becomes empty if `first` is the other header.
define internal void @__gr_links_take(ptr %head, ptr %other, ptr %first, ptr %last) alwaysinline {
entry:
  %none = icmp eq ptr %first, %other
  br i1 %none, label %alone, label %some
alone:
  call void @__gr_links_join(ptr %head, ptr %head)
  br label %done
some:
  call void @__gr_links_join(ptr %head, ptr %first)
  call void @__gr_links_join(ptr %last, ptr %head)
  br label %done
done:
  ret void
}

; Swaps the lists of two headers.
define void @__gr_links_swap(ptr %a, ptr %b) alwaysinline {
  %a.place = getelementptr i8, ptr %a, i64 8
  %b.place = getelementptr i8, ptr %b, i64 8
  %a.first = load ptr, ptr %a
  %a.last = load ptr, ptr %a.place
  %b.first = load ptr, ptr %b
  %b.last = load ptr, ptr %b.place
  call void @__gr_links_take(ptr %a, ptr %b, ptr %b.first, ptr %b.last)
  call void @__gr_links_take(ptr %b, ptr %a, ptr %a.first, ptr %a.last)
  ret void
}

; Reverses a list.
define void @__gr_links_reverse(ptr %head) alwaysinline {
entry:
  br label %each
each:
  %link = phi ptr [ %head, %entry ], [ %next, %each ]
  %place = getelementptr i8, ptr %link, i64 8
  %next = load ptr, ptr %link
  %before = load ptr, ptr %place
  store ptr %before, ptr %link
  store ptr %next, ptr %place
  %all = icmp eq ptr %next, %head
  br i1 %all, label %done, label %each
done:
  ret void
}
