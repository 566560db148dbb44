/**
 * The kubelet runs in a journal, oldest first, each with its error messages, newest first. A run begins where
 * systemd logs a start or the process ID changes.
 */
export function splitRuns(journal: string): (readonly string[])[] {
  const runs: string[][] = [[]];
  let pid: string | null = null;
  for (const entry of journalEntries(journal)) {
    const own = /^[IWEF]\d{4} \S+\s+(\d+) /.exec(entry)?.[1] ?? null;
    const started = /^Started .*kubelet/i.test(entry);
    if (started || (own !== null && pid !== null && own !== pid)) runs.push([]);
    pid = started ? null : (own ?? pid);
    const text = errorText(entry);
    if (text !== null) runs.at(-1)?.push(text);
  }
  return runs.map((run) => run.reverse());
}

/** Journal lines, with klog's form for long values (`err=<` up to `>`) joined. */
function journalEntries(journal: string): readonly string[] {
  const entries: string[] = [];
  let open = false;
  for (const line of lastLines(journal)) {
    if (!open && line.trim() !== '') entries.push(line);
    else if (open) entries.push(`${entries.pop()}\n${line}`);
    open = open ? line.trim() !== '>' : /^[IWEF]\d{4} .*=<$/.test(line);
  }
  return entries;
}

/**
 * Limits for journals of misbehaving hosts: more lines than requested, or longer lines than a kubelet prints.
 */
const MAX_LINES = 2000;
const MAX_LINE = 64 * 1024;

function lastLines(journal: string): readonly string[] {
  return journal
    .split('\n')
    .slice(-MAX_LINES)
    .map((line) => line.slice(0, MAX_LINE));
}

/**
 * `message: error` of a log entry in klog format or JSON; null for information and warnings. Other lines
 * unchanged.
 */
function errorText(entry: string): string | null {
  const klog = /^([IWEF])\d{4} \S+\s+\d+ [^\]]+\] ([\s\S]*)$/.exec(entry);
  if (klog) return klog[1] === 'I' || klog[1] === 'W' ? null : klogText(klog[2] as string);
  return entry.startsWith('{') ? jsonText(entry) : entry.trim();
}

const QUOTED = /^"((?:[^"\\]|\\.)*)"/;

/**
 * The content of klog's form for long values, from `<` up to a line `>`; null for other values, or if the end
 * is cut off.
 */
function linesOf(value: string): string | null {
  const [first, ...lines] = value.split('\n');
  const end = first === '<' ? lines.findIndex((line) => line.trim() === '>') : -1;
  return end < 0 ? null : lines.slice(0, end).join('\n').trim();
}

function klogText(text: string): string {
  const message = QUOTED.exec(text)?.[1];
  if (message === undefined) return oneLine(text);
  const at = text.indexOf(' err=');
  const error = at < 0 ? '' : text.slice(at + ' err='.length);
  const quoted = QUOTED.exec(error)?.[1];
  const reported = quoted === undefined ? linesOf(error) : unquote(quoted);
  return oneLine(unquote(message) + (reported === null ? '' : `: ${reported}`));
}

function jsonText(entry: string): string | null {
  try {
    const { msg, err, v } = JSON.parse(entry) as { msg?: unknown; err?: unknown; v?: unknown };
    if (v !== undefined) return null;
    return oneLine(err === undefined ? String(msg) : `${String(msg)}: ${String(err)}`);
  } catch {
    return entry;
  }
}

function unquote(text: string): string {
  return text.replace(/\\(.)/g, (_, char: string) => ({ n: '\n', t: '\t' })[char] ?? char);
}

function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}
