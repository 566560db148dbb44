import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import * as wellKnown from '../../../src/kube/well-known.ts';

const SRC = path.join(import.meta.dirname, '..', '..', '..', 'src');
const TABLE = path.join('kube', 'well-known.ts');
/** Phases of kubeadm that have the names of ConfigMaps. */
const PHASE_NAMES = new Set([
  "cli/hosts-view.ts 'kubelet-config'",
  "kubeadm/phases/kubelet-start.ts 'kubelet-config'",
  "kubeadm/phases/save-node-settings.ts 'kubelet-config'",
  "kubeadm/workflows/phase-lists.ts 'kubelet-config'",
]);

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts') && file !== TABLE);

describe('paths and names of Kubernetes', () => {
  it('are spelled in one table', () => {
    const values = Object.values(wellKnown);
    const spelled = files.flatMap((file) => {
      const text = readFileSync(path.join(SRC, file), 'utf8');
      return values.filter((value) => text.includes(`'${value}'`) || text.includes(`\`${value}\``)).map((value) => `${file} '${value}'`);
    });
    expect(spelled.filter((place) => !PHASE_NAMES.has(place) && !isComment(place))).toEqual([]);
  });

  it('are each in the table once', () => {
    const values = Object.values(wellKnown);
    expect(values).toHaveLength(new Set(values).size);
  });
});

/** A backtick in a comment quotes a path for its reader. */
function isComment(place: string): boolean {
  const [file = '', value = ''] = place.split(/ (?=')/);
  const bare = value.slice(1, -1);
  return readFileSync(path.join(SRC, file), 'utf8')
    .split('\n')
    .filter((line) => line.includes(`'${bare}'`) || line.includes(`\`${bare}\``))
    .every((line) => /^\s*(?:\*|\/\*\*|\/\/)/.test(line));
}
