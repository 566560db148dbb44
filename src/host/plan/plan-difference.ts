import type { JsonObject } from '../../base/json.ts';
import { encodeYaml, type YamlValue } from '../../codec/yaml-encode.ts';
import type { HostChanges } from './fold.ts';
import { unifiedDiff } from './text-diff.ts';

/**
 * The difference between the saved or shown plan and the current one, as a unified diff. Secrets are masked
 * as in plans.
 * @returns lines without a final newline; empty: the plans are equal
 */
export function planDifference(planned: HostChanges, now: HostChanges): string {
  return unifiedDiff(textOf(planned), textOf(now), { before: 'planned', after: 'now' }).trimEnd();
}

function textOf({ changes, deferred }: HostChanges): string {
  return [...changes, ...deferred].map((change) => encodeYaml([shown(change)] as unknown as YamlValue)).join('');
}

/** Omitted: the diff of a file already shows its content. */
function shown({ content, origin: _, diff, ...change }: JsonObject): JsonObject {
  return diff === undefined ? { ...change, ...(content === undefined ? {} : { content }) } : { ...change, diff };
}
