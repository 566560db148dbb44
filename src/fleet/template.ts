/** Parts of a text with variables: literal text, and names. */
export type TemplatePart = string | { readonly variable: string };

export type ParsedTemplate = { readonly parts: readonly TemplatePart[] } | { readonly fault: string };

const OPEN = '{{';
const NAME = /^[A-Za-z_]\w*$/;
const LITERAL = /^(?:"([^"\\]*)"|'([^'\\]*)')$/;

/** Whether a text contains a template. */
export function isTemplate(text: string): boolean {
  return text.includes(OPEN);
}

/**
 * Parses a template: `{{ name }}` is a variable, `{{ "{{" }}` literal braces. Filters and conditions are not
 * supported, so that the meaning of a file is visible in it.
 */
export function parseTemplate(text: string): ParsedTemplate {
  const parts: TemplatePart[] = [];
  let at = 0;
  for (let open = text.indexOf(OPEN); open >= 0; open = text.indexOf(OPEN, at)) {
    if (open > at) parts.push(text.slice(at, open));
    const closing = /^\{\{(?:\s*"[^"]*"\s*|\s*'[^']*'\s*|[^{}"']*)\}\}/.exec(text.slice(open, open + 300))?.[0];
    if (closing === undefined) return { fault: 'contains {{ without a closing }}, or more than one name between the braces' };
    const inside = closing.slice(2, -2).trim();
    const literal = LITERAL.exec(inside);
    if (literal) parts.push(literal[1] ?? literal[2] ?? '');
    else if (NAME.test(inside)) parts.push({ variable: inside });
    else return { fault: inside === '' ? 'has an empty {{ }}' : 'contains more than the name of a variable between {{ and }}' };
    at = open + closing.length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return { parts };
}
