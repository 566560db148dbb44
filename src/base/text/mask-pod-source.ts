/**
 * Replaces the credentials in a KubeletConfiguration, with which the kubelet authenticates at the URL of its static pods:
 * HTTP headers, and the user in the URL. Needs no valid YAML or JSON, because texts of hosts may be damaged: where the end of
 * a value is not certain, more is masked. Runs in linear time.
 */
export function maskPodSource(text: string): string {
  if (!/staticPodURL/i.test(text)) return text;
  const headers = valuesOf(text, HEADERS);
  // The headers, or a part of them, may be the value of an anchor.
  const isAliased = headers.some(({ from, to }) => /\*[^\s,*]/.test(text.slice(from, to)));
  const values = isAliased ? [...headers, ...valuesOf(text, ANCHORS)] : headers;
  return replaceAll(text, values).replace(USER_OF_URL, '$1[secret]@');
}

/** A value, with the space after the colon or the anchor. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** The name as a key: of a block, of a flow mapping, with `?`, or in JSON inside a string. */
const HEADERS = /staticPodURLHeader(?:\\{0,8}["'])?\s*(?:#[^\n]{0,200}\n\s*)?:(?! \[secret\])/gi;
const ANCHORS = /(?<=[\s,[{])&[^\s,[\]{}]+/g;
const USER_OF_URL = /(staticPodURL["']?\s*:\s*(?:[&!]\S{0,100}\s+){0,2}["']?[a-z]+:\\?\/\\?\/)[^\s/\\"]*@/gi;

function replaceAll(text: string, values: readonly Range[]): string {
  let masked = '';
  let end = 0;
  for (const { from, to } of [...values].sort((a, b) => a.from - b.from)) {
    if (from >= end) masked += `${text.slice(end, from)} [secret]`;
    end = Math.max(end, to);
  }
  return masked + text.slice(end);
}

function valuesOf(text: string, key: RegExp): readonly Range[] {
  const values: Range[] = [];
  let to = 0;
  for (const { index, 0: match } of text.matchAll(key)) {
    if (index < to) continue;
    const from = index + match.length;
    const start = startOfValue(text, from);
    const isFlow = (text[start] === '{' || text[start] === '[') && !match.includes('\\');
    to = isFlow ? endOfFlow(text, start) : endOfBlock(text, index, from);
    values.push({ from, to });
  }
  return values;
}

/** White space, comments, tags and anchors before a value. */
const BEFORE_VALUE = /(?:\s+|(?<=\s)#[^\n]*|(?<=\s)[&!][^\s,[\]{}]*){0,20}/y;

function startOfValue(text: string, from: number): number {
  BEFORE_VALUE.lastIndex = from;
  return from + (BEFORE_VALUE.exec(text)?.[0].length ?? 0);
}

const TOKEN = /(?<=\s)#[^\n]*|[[\]{},]|\s+|[^\s,[\]{}]+/y;
/** Where a scalar may begin: a quote in the middle of a plain one (it's) is a character like others. */
const FIRST_TOKEN = /"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|'(?:[^']|'')*(?:'|$)|(?<=\s)#[^\n]*|[&!][^\s,[\]{}]*|[[\]{},:?]|\s+|[^\s,[\]{}]+/y;

/** After the bracket that closes a flow collection; the end of the text if none does. */
function endOfFlow(text: string, start: number): number {
  let depth = 0;
  let isFirst = true;
  for (let at = start; at < text.length; ) {
    const token = isFirst ? FIRST_TOKEN : TOKEN;
    token.lastIndex = at;
    const [word = ' '] = token.exec(text) ?? [];
    at += word.length;
    if (/^[{[]/.test(word)) depth++;
    else if (/^[}\]]/.test(word)) depth--;
    if (depth === 0) return at;
    if (/^[{[,]/.test(word)) isFirst = true;
    else if (/^["']/.test(word) && isFirst) isFirst = text[at] === ':';
    else if (/^[^\s#&!]/.test(word)) isFirst = /[:?]$/.test(word);
  }
  return text.length;
}

/** After the lines that are empty, indented more than the key, or items of its list. */
function endOfBlock(text: string, key: number, from: number): number {
  const indentOf = (line: string): number => line.search(/[^ \t]|$/);
  const indent = indentOf(text.slice(text.lastIndexOf('\n', key) + 1, key + 1));
  const line = /[^\n]*(?:\n|$)/y;
  line.lastIndex = from;
  let end = from;
  for (let next = line.exec(text)?.[0] ?? ''; next !== ''; next = line.exec(text)?.[0] ?? '') {
    const isEmpty = next.trim() === '';
    const own = indentOf(next);
    if (end > from && !isEmpty && (own < indent || (own === indent && next[own] !== '-'))) break;
    if (end === from || !isEmpty) end = line.lastIndex;
  }
  return /\r?\n$/.exec(text.slice(Math.max(from, end - 2), end)) === null ? end : end - (text[end - 2] === '\r' ? 2 : 1);
}
