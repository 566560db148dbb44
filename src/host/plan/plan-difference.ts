import type { JsonObject } from '../../base/json.ts';
import { encodeYaml, type YamlValue } from '../../codec/yaml-encode.ts';
import type { HostChanges } from './fold.ts';
import { unifiedDiff } from './text-diff.ts';

/**
 * What is different between what was planned on a host and what would be done now, as a unified diff of the two plans. Secrets are masked as in plans.
 * @returns lines without a final newline; empty: the plans read the same
 */
export function planDifference(planned: HostChanges, now: HostChanges): string {
  return unifiedDiff(textOf(planned), textOf(now), { before: 'planned', after: 'now' }).trimEnd();
}

function textOf({ changes, deferred }: HostChanges): string {
  return [...changes, ...deferred].map((change) => encodeYaml([shown(change)] as unknown as YamlValue)).join('');
}

/** A diff of a file says what its content says. */
function shown({ content, origin: _, diff, ...change }: JsonObject): JsonObject {
  return diff === undefined ? { ...change, ...(content === undefined ? {} : { content }) } : { ...change, diff };
}
