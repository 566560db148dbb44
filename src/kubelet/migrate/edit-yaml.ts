import { type Document, isMap, isScalar, parseDocument } from 'yaml';
import { upTo } from '../../base/text/up-to.ts';
import { encodeYaml, type YamlValue } from '../../codec/yaml-encode.ts';
import type { FieldEdit } from './migrate-fields.ts';

const FAILSAFE = { schema: 'failsafe', version: '1.1', uniqueKeys: false, logLevel: 'silent', prettyErrors: false } as const;

/**
 * Changes fields of a YAML text and keeps everything else as written: comments, order, quotes.
 * @param text one document
 * @returns null if not possible (anchors, merge keys, JSON in several styles): the caller renders the values
 *   again
 */
export function editYaml(text: string, edits: readonly FieldEdit[]): string | null {
  if (edits.length === 0) return text;
  // The failsafe schema keeps every scalar as text, so that unchanged values are printed as written.
  const document = parseDocument(text, FAILSAFE);
  if (document.errors.length > 0 || !isMap(document.contents)) return null;
  try {
    for (const { path, value } of edits) {
      if (value === undefined) remove(document, path);
      else put(document, path, parseDocument(encodeYaml(value as YamlValue), FAILSAFE).contents);
    }
    const indentSeq = !hasUnindentedList(text.split('\n'));
    return document.toString({ lineWidth: 0, indent: indentOf(text), indentSeq, flowCollectionPadding: !/\{\S/.test(text) });
  } catch {
    return null;
  }
}

/** Indentation of the first member of an object. */
function indentOf(text: string): number {
  const lines = text.split('\n');
  const depths = lines.flatMap((line, i) => {
    const before = lines[i - 1] ?? '';
    const isObject = /^[^\s#]/.test(before) && upTo(before, ' #').trimEnd().endsWith(':');
    return isObject ? (/^( +)[^\s#-]/.exec(line)?.[1]?.length ?? []) : [];
  });
  const depth = depths[0] ?? 2;
  return depth <= 8 ? depth : 2;
}

/** Whether list items have the same indentation as their key. */
function hasUnindentedList(lines: readonly string[]): boolean {
  return lines.some((line, i) => {
    const name = line.trimStart();
    const indent = line.slice(0, line.length - name.length);
    return !/^[#-]/.test(name) && name.trimEnd().endsWith(':') && (lines[i + 1] ?? '').startsWith(`${indent}- `);
  });
}

/** Keeps the comment after the old value. */
function put(document: Document, path: readonly string[], value: unknown): void {
  const old = document.getIn(path, true);
  if (isScalar(old) && isScalar(value) && old.comment != null) value.comment = old.comment;
  document.setIn(path, value);
}

/** Removes a field, and parent objects that become empty. */
function remove(document: Document, path: readonly string[]): void {
  document.deleteIn(path);
  for (let parent = path.slice(0, -1); parent.length > 0; parent = parent.slice(0, -1)) {
    const node = document.getIn(parent, true);
    if (!isMap(node) || node.items.length > 0) return;
    document.deleteIn(parent);
  }
}
