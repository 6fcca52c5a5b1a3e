import { Component, h, type ComponentChild, type FunctionComponent } from "preact";

/** A component that is drawn again only when same says that its properties changed. */
export function memo<P extends object>(
  draw: FunctionComponent<P>,
  same: (before: Readonly<P>, after: Readonly<P>) => boolean,
): new (props: P) => Component<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      return !same(this.props as Readonly<P>, next);
    }

    override render(): ComponentChild {
      return h(draw, this.props as P);
    }
  };
}
