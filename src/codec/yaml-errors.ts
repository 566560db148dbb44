/** Messages of the yaml library that use the terms of the YAML specification, and their wording for users. */
const WORDINGS: readonly (readonly [message: RegExp, wording: string])[] = [
  [/^flow (?:map|sequence) .*end with a ([\]}])/i, 'unclosed'],
  [/^missing closing (["'])quote/i, 'the quotation mark $1 that opens the value is not closed'],
  [/^missing , or : between .*|^missing , between .*/i, 'a comma is missing between the items in brackets'],
  [/^missing space after : in .*/i, 'a space is missing after the colon'],
  [/^unexpected (\S+) in flow (?:map|sequence)$/i, 'unexpected $1 in brackets'],
  [/^unexpected empty item in .*/i, 'unexpected empty item in brackets'],
  [/^unexpected \S+ at node end$/i, 'unexpected text after a complete value'],
  [/^nested mappings are not allowed in compact mappings$/i, 'nested'],
  [
    /^implicit keys need to be on a single line$/i,
    'the line does not fit the lines before or after it: check the indentation and the form "key: value" or "- item"',
  ],
  [/^implicit map keys need to be followed by map values$/i, 'the key is not followed by a colon'],
  [/^all (?:mapping|sequence) items must start at the same column$/i, 'lines of the same level must have the same indentation'],
  [/^a block sequence may not be used as an implicit map key$/i, 'unexpected list item: check the indentation'],
  [/^sequence item without - indicator$/i, 'an item of a list must begin with "- "'],
  [/^unexpected \S+ token in YAML stream: (.*)$/i, 'unexpected $1'],
  [/^tabs are not allowed as indentation$/i, 'a line must not begin with a tab'],
  [
    /^plain value cannot start with (?:reserved character |block scalar indicator |flow indicator character |directive indicator character )?(.*)$/i,
    'a value that begins with $1 must be quoted',
  ],
];

const OPENING: Readonly<Record<string, string>> = { ']': '[', '}': '{' };

/** Words an error of the yaml library for users, with the position that the message describes. */
export function explainYamlError(
  text: string,
  { message, offset }: { readonly message: string; readonly offset: number },
): { readonly message: string; readonly offset: number } {
  const first = (message.split('\n')[0] ?? message).replace(/[.:]$/, '');
  for (const [pattern, wording] of WORDINGS) {
    const match = pattern.exec(first);
    if (match === null) continue;
    if (wording === 'nested') return { message: whyNested(text, offset), offset };
    if (wording !== 'unclosed') return { message: first.replace(pattern, wording), offset };
    const closing = match[1] ?? ']';
    const opening = OPENING[closing] ?? '[';
    return {
      message: `the ${opening} is not closed with ${closing}, or a line before the ${closing} is not indented`,
      offset: openingOffset(text, offset, opening, closing),
    };
  }
  return { message: `${first.charAt(0).toLowerCase()}${first.slice(1)}`, offset };
}

/** Why a value is read as a mapping. @param offset start of the value */
function whyNested(text: string, offset: number): string {
  const [line = '', next = ''] = text.slice(offset).split('\n', 2);
  if (/: |:$/.test(line) || !/^\s/.test(next)) return 'the value contains ": ". Quote the value';
  return `the next line (${text.slice(0, offset).split('\n').length + 1}) is indented more than this line, so it is read as a part of this value`;
}

/** The last bracket before a position that is not closed before it. Brackets in quotes are not recognised. */
function openingOffset(text: string, end: number, opening: string, closing: string): number {
  let depth = 0;
  for (let i = Math.min(end, text.length) - 1; i >= 0; i--) {
    const char = text.charAt(i);
    if (char === closing) depth++;
    else if (char === opening && depth-- === 0) return i;
  }
  return end;
}
