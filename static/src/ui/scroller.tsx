import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";

const near = 48; // px from the end that count as being there

interface ScrollerProps {
  /** Changes when another thread is shown: the new one starts at its end. */
  subject: string;
  /** Grows when the reader did something that they want to see the result of. */
  anchor: number;
  /** Whether there is a conversation; what stands in its place is read from the top. */
  filled: boolean;
  children: ComponentChildren;
}

/** The conversation's scroll area. It follows the end while the reader is there, and keeps still once they scroll up. */
export function Scroller({ subject, anchor, filled, children }: ScrollerProps) {
  const area = useRef<HTMLDivElement>(null);
  const follow = useRef(true);
  const lastTop = useRef(0);
  const [away, setAway] = useState(false);

  const toEnd = () => {
    const element = area.current!;
    element.scrollTop = element.scrollHeight;
    lastTop.current = element.scrollTop;
  };
  const setFollow = (value: boolean) => {
    follow.current = value;
    setAway(!value);
  };
  const onScroll = () => {
    const element = area.current!;
    const rest = element.scrollHeight - element.clientHeight - element.scrollTop;
    if (!filled) return;
    if (rest < near) setFollow(true);
    else if (element.scrollTop < lastTop.current - 1) setFollow(false);
    lastTop.current = element.scrollTop;
  };
  const onWheel = (event: WheelEvent) => {
    const element = area.current!;
    if (filled && event.deltaY < 0 && element.scrollHeight > element.clientHeight) setFollow(false);
  };
  // Opening a fold makes the page longer at the place the reader looks at: that is no reason to move it.
  const onToggle = () => {
    const element = area.current!;
    if (element.scrollHeight - element.clientHeight - element.scrollTop > near) setFollow(false);
  };

  useLayoutEffect(() => {
    follow.current = filled;
    setAway(false);
    if (filled) toEnd();
    else area.current!.scrollTop = 0;
  }, [subject, anchor, filled]);
  useLayoutEffect(() => {
    if (follow.current) toEnd();
  });
  useEffect(() => {
    const observer = new ResizeObserver(() => follow.current && toEnd());
    observer.observe(area.current!);
    area.current!.addEventListener("toggle", onToggle, true);
    return () => observer.disconnect();
  }, []);

  return (
    <div class="scroller-frame">
      <div class="scroller" ref={area} onScroll={onScroll} onWheel={onWheel} tabIndex={0} role="region" aria-label="Conversation">
        {children}
      </div>
      {away && (
        <button
          type="button" class="button latest" data-testid="latest"
          onClick={() => {
            setFollow(true);
            toEnd();
          }}
        >
          <Icon name="down" size={15} /> Latest
        </button>
      )}
    </div>
  );
}
