/** A text with variables in it: what stands as it is, and names. */
export type TemplatePart = string | { readonly variable: string };

export type ParsedTemplate = { readonly parts: readonly TemplatePart[] } | { readonly fault: string };

const OPEN = '{{';
const NAME = /^[A-Za-z_]\w*$/;
const LITERAL = /^(?:"([^"\\]*)"|'([^'\\]*)')$/;

/** Tells whether a text has to be worked out at all. */
export function isTemplate(text: string): boolean {
  return text.includes(OPEN);
}

/**
 * Reads a template: `{{ name }}` stands for a variable, `{{ "{{" }}` for braces. There is nothing else: no filters, no conditions, so that what
 * a file means can be seen in it.
 */
export function parseTemplate(text: string): ParsedTemplate {
  const parts: TemplatePart[] = [];
  let at = 0;
  for (let open = text.indexOf(OPEN); open >= 0; open = text.indexOf(OPEN, at)) {
    if (open > at) parts.push(text.slice(at, open));
    const closing = /^\{\{(?:\s*"[^"]*"\s*|\s*'[^']*'\s*|[^{}"']*)\}\}/.exec(text.slice(open, open + 300))?.[0];
    if (closing === undefined) return { fault: 'has a {{ that is not closed, or more than a name in it' };
    const inside = closing.slice(2, -2).trim();
    const literal = LITERAL.exec(inside);
    if (literal) parts.push(literal[1] ?? literal[2] ?? '');
    else if (NAME.test(inside)) parts.push({ variable: inside });
    else return { fault: inside === '' ? 'has nothing between {{ and }}' : 'has more than the name of a variable between {{ and }}' };
    at = open + closing.length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return { parts };
}
