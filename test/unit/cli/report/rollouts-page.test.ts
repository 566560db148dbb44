import { describe, expect, it } from 'vitest';
import { renderTexts } from '../../../../src/cli/report/render-report.ts';
import { rolloutsPage } from '../../../../src/cli/report/rollouts-page.ts';
import type { RolloutObjects } from '../../../../src/rollouts/use-cases/watch-rollouts.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import {
  countsOf,
  largeRollouts,
  poolNode,
  poolRevisions,
  poolRollout,
  rolloutObjects,
  smallRollout,
} from '../../../support/rollout-page-objects.ts';

const TEMPLATES = await loadTemplates();
const CLUSTER = { context: 'admin@shop', server: 'https://10.0.0.1:6443' };

/** The parts of the page, as text without tags; `html`: with them. */
function pageOf(objects: RolloutObjects) {
  const { title, parts } = renderTexts(rolloutsPage(objects, CLUSTER, '0.1.0'), TEMPLATES);
  const textOf = (html = ''): string =>
    html
      .replace(/<[^>]*>/g, ' ')
      .replace(/&#x3D;/g, '=')
      .replace(/&gt;/g, '>')
      .replace(/\s+/g, ' ')
      .trim();
  return {
    title,
    head: textOf(parts.head),
    problems: textOf(parts.problems),
    rollouts: textOf(parts.rollouts),
    html: parts.rollouts ?? '',
  };
}

/** A rollout of two nodes of the pool `edge`. */
function edge(status: Parameters<typeof poolRollout>[1], spec: Parameters<typeof poolRollout>[2] = {}) {
  return rolloutObjects({ rollouts: [poolRollout('edge', status, spec)], nodes: [poolNode('n1', 'edge'), poolNode('n2', 'edge')] });
}

describe('the page of rollouts', () => {
  it('shows a rollout: nodes by state, batch, gates and revisions', () => {
    const { title, head, rollouts, html } = pageOf(smallRollout());
    expect(title).toBe('✗ kubeletadm ui: admin@shop');
    expect(head).toMatch(
      /✗ edge: Progressing, 1 of 3 nodes failed 3 nodes of rollouts ✗ 1 failed ▸ 1 in progress ✓ 1 updated .* Controller running/,
    );
    expect(rollouts).toMatch(/edge Progressing Pause… Undo to revision 2… 1 of 3 nodes updated, 1 in progress, 1 failed/);
    expect(rollouts).toContain('Batch 2, started 2026-11-30 10:00:00 UTC Gates error-rate (EachBatch)');
    expect(rollouts).toContain('1 error-rate Passed 1m05s 2 0.2, at most 0.5');
    expect(rollouts).toMatch(
      /3 edge-\w+ 2026-11-12 10:00:00 UTC rolling out overlay 2 edge-\w+ 2026-11-11 10:00:00 UTC overlay Undo to 2…/,
    );
    expect(html).toContain(
      'title="edge-3: failed, NotReady, since 2026-11-30 10:00:00 UTC: rolled back: the kubelet did not become Ready within 120 s"',
    );
    expect(html).toMatch(/<option value="2" selected>2<\/option>.*<option value="3" selected>3<\/option>/s);
  });

  it('lists failures first: nodes with the same cause together, then why the rollout has stopped', () => {
    const { title, head, problems, rollouts } = pageOf(largeRollouts());
    expect(title).toBe('✗ kubeletadm ui: admin@shop');
    expect(head).toContain('✗ 1 of 3 rollouts stalled: edge (Failed)');
    expect(head).toContain('Without rollout 200 of 5000 nodes');
    expect(problems).toMatch(
      /Nodes Problem error edge-1700, edge-1702, edge-1704 rollout edge failed: rolled back: .* error edge-1701, edge-1703, edge-1705 rollout edge unreachable: not updated after 900 s error – rollout edge is Failed: .* Hint: Return to the previous configuration: kubeletadm rollout undo edge \[ROLLOUT_FAILED\]/,
    );
    expect(rollouts).toMatch(/edge Failed 4000 1794 20 6 edge-\w+ gpu Complete 500 500 0 0 gpu-\w+ web Paused 300 2 0 0/);
  });

  it('outlines canaries, and offers to resume a paused rollout', () => {
    const { html } = pageOf(largeRollouts());
    expect([...html.matchAll(/class="cell \w+ canary" title="([^"]*)"/g)].map(([, words]) => words)).toEqual([
      'web-0000: updated, canary',
      'web-0001: updated, canary',
    ]);
    expect(html).toContain('data-action="resume" data-rollout="web"');
    expect(html).not.toContain('data-action="resume" data-rollout="edge"');
  });

  it.each([
    ['Complete', '✓ edge: Complete'],
    ['Paused', '! edge: Paused'],
    ['Reverting', '▸ edge: Reverting'],
    ['Refused', '✗ edge: Refused'],
  ] as const)('has a verdict for %s', (phase, verdict) => {
    expect(pageOf(edge({ phase, counts: countsOf(2, { updated: 2 }) })).head).toContain(verdict);
  });

  it('is red if nodes of a rollout failed that continues', () => {
    const failed = { nodes: [{ name: 'n1', state: 'Failed' }], counts: countsOf(2, { failed: 1, updated: 1 }) } as const;
    const { rollouts, nodes } = edge({ phase: 'Progressing', ...failed, nodes: [...failed.nodes] });
    const other = poolRollout('gpu', { phase: 'Progressing' });
    expect(pageOf(rolloutObjects({ rollouts: [...rollouts, other], nodes })).head).toContain(
      '✗ 1 of 2 rollouts with failed nodes: edge (Progressing)',
    );
  });

  it('does not show nodes as updated that returned to their previous configuration, and the failed revision as rolling out', () => {
    const objects = { ...smallRollout(), nodes: [poolNode('n1', 'edge'), poolNode('n2', 'edge')] };
    const [revision] = poolRevisions('edge', [200]);
    const status = { phase: 'Reverted', failedRevision: revision?.metadata.name, counts: countsOf(2, { updated: 1, failed: 1 }) } as const;
    const reverted = { ...objects, rollouts: [poolRollout('edge', { ...status, nodes: [{ name: 'n1', state: 'Failed' }] })] };
    expect(pageOf(reverted).head).toMatch(
      /✗ edge: Reverted, 1 of 2 nodes failed 2 nodes of rollouts ✗ 1 failed ↩ 1 previous configuration/,
    );
    expect(pageOf({ ...objects, rollouts: [poolRollout('edge', { phase: 'Failed' })] }).rollouts).toMatch(
      /3 edge-\w+ .{23} failed overlay/,
    );
  });

  it('says that no rollout exists, and how to create one', () => {
    expect(pageOf(rolloutObjects({ isControllerAlive: false })).head).toContain('No rollout exists. Create one: kubeletadm rollout create');
  });

  it('shows an object that no controller has processed, and warns that none is running', () => {
    const objects = { ...edge({ observedGeneration: 0, phase: 'Complete' }), isControllerAlive: false };
    const { head, problems, rollouts } = pageOf(objects);
    expect(head).toMatch(/▸ edge: new .* Controller not running/);
    expect(problems).toContain(
      'warning – no controller has renewed its Lease kubeletadm-system/kubeletadm-controller within the last minute',
    );
    expect(rollouts).toContain('not processed yet by a controller');
  });

  it('shows why it may be out of date, before all else', () => {
    const issues = [{ code: 'CLUSTER_UNREACHABLE', message: 'connection refused', hint: 'Check the network' }];
    const { problems } = pageOf({ ...smallRollout(), issues });
    expect(problems).toMatch(
      /^Problems Severity Nodes Problem error – connection refused Hint: Check the network \[CLUSTER_UNREACHABLE\] error edge-3/,
    );
  });

  it('shows the nodes of two overlapping rollouts only once, and objects that this version cannot read as problems', () => {
    const refused = { phase: 'Refused', message: 'Node n1 and 1 more are selected by an older KubeletConfigRollout: edge' } as const;
    const younger = poolRollout('younger', refused, { nodeSelector: {} });
    const broken = { ...poolRollout('broken', {}), spec: { nodeSelector: {}, payload: {} } };
    const objects = edge({ phase: 'Complete', counts: countsOf(2, { updated: 2 }) });
    const { head, problems, html } = pageOf({ ...objects, rollouts: [...objects.rollouts, younger, broken] });
    expect(head).toContain('2 nodes of rollouts ✓ 2 updated');
    expect(problems).toMatch(/rollout younger is Refused: Node n1 and 1 more are selected by an older KubeletConfigRollout: edge/);
    expect(problems).toMatch(/rollout broken spec\.payload: exactly one of configMapRef and overlay is required \[ROLLOUT_INVALID\]/);
    expect(html.match(/class="cell /g)).toHaveLength(2);
  });

  it('has no actions for an object that is being deleted, and no revisions of an earlier object of the same name', () => {
    const objects = edge({ phase: 'Deleting' });
    const [rollout] = objects.rollouts;
    if (rollout === undefined) throw new Error('no rollout');
    const deleted = { ...rollout, metadata: { ...rollout.metadata, deletionTimestamp: '2026-11-30T11:00:00Z' } };
    expect(pageOf({ ...objects, rollouts: [deleted], revisions: poolRevisions('edge', [100, 200]) }).html).not.toMatch(
      /data-action="(pause|undo)/,
    );
    const recreated = { ...rollout, metadata: { ...rollout.metadata, uid: 'another' } };
    expect(pageOf({ ...objects, rollouts: [recreated], revisions: poolRevisions('edge', [100, 200]) }).rollouts).not.toContain('Revisions');
  });
});
