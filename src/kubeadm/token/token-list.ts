import type { JsonObject } from '../../base/json.ts';
import { normaliseRfc3339 } from '../../base/text/rfc3339.ts';
import { renderTabTable } from '../../base/text/table.ts';
import { encodeGoJson } from '../../codec/json-text.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { remainingMs, type StoredToken } from './token-secret.ts';

/**
 * Tokens byte-for-byte as printed by `kubeadm token list`; an empty list gives an empty string. The output
 * contains the tokens: for standard output only.
 * @see kubeadm 1.36 app/cmd/token.go: each row is aligned separately, the first one together with the header
 */
export function renderTokenTable(tokens: readonly StoredToken[], now: Date, { headers }: { readonly headers: boolean }): string {
  return tokens
    .map((token, i) => [...renderTabTable(headers && i === 0 ? [HEADER, rowOf(token, now)] : [rowOf(token, now)]), ''].join('\n'))
    .join('');
}

/**
 * Tokens as documents, byte-for-byte as printed by `kubeadm token list`: for standard output only.
 * @see output.kubeadm.k8s.io/v1alpha3
 */
export function renderTokenList(tokens: readonly StoredToken[], format: 'json' | 'yaml'): string {
  const documents = tokens.map(tokenDocument);
  if (format === 'yaml') return documents.map((document) => encodeYaml(document)).join('---\n');
  return documents.map(encodeGoJson).join('');
}

const HEADER = ['TOKEN', 'TTL', 'EXPIRES', 'USAGES', 'DESCRIPTION', 'EXTRA GROUPS'] as const;

function rowOf(token: StoredToken, now: Date): readonly string[] {
  const left = remainingMs(token, now);
  return [
    token.token.reveal(),
    padEnd(left === null ? '<forever>' : shortDuration(left), 9),
    token.expires === null ? '<never>' : asWritten(token.expires),
    padEnd(token.usages.join(',') || '<none>', 22),
    padEnd(oneLine(token.description) || '<none>', 56),
    token.groups.join(',') || '<none>',
  ];
}

/** Counts characters, as Go does. */
function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - [...text].length));
}

/** Anyone may write a description: it must not control the terminal or break the row. */
function oneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ');
}

/** @see apimachinery 1.36 duration.ShortHumanDuration; a Go duration is limited to 292 years */
function shortDuration(ms: number): string {
  const seconds = Math.trunc(Math.min(ms / 1000, 9_223_372_036));
  if (seconds < -1) return '<invalid>';
  if (seconds < 60) return `${Math.max(seconds, 0)}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 24) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  return days < 365 ? `${days}d` : `${Math.trunc(days / 365)}y`;
}

/** The time in its original time zone, without fractions of a second. */
function asWritten(expires: string): string {
  return expires.replace(/[.,]\d+/, '').replace(/[-+]00:00$/, 'Z');
}

/** A token as a document, which contains the token. */
export function tokenDocument({ token, description, expires, usages, groups }: StoredToken): JsonObject {
  return {
    kind: 'BootstrapToken',
    apiVersion: 'output.kubeadm.k8s.io/v1alpha3',
    token: token.reveal(),
    ...(description === '' ? {} : { description }),
    ...(expires === null ? {} : { expires: normaliseRfc3339(expires) ?? expires }),
    ...(usages.length === 0 ? {} : { usages }),
    ...(groups.length === 0 ? {} : { groups }),
  };
}
