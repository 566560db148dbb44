import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/kube/cluster.ts';
import { rolloutDefinition } from '../../src/rollouts/api/crd.ts';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';
import type { RolloutObjects } from '../../src/rollouts/use-cases/watch-rollouts.ts';
import { type FakeCluster, fakeCluster } from '../support/fake-cluster.ts';
import { findChromium, type HeadlessBrowser, LOWEST_CONTRAST, startBrowser } from '../support/headless-browser.ts';
import { HOSTILE } from '../support/hostile-text.ts';
import { requirement } from '../support/requirement.ts';
import {
  countsOf,
  largeRollouts,
  poolNode,
  poolRevisions,
  poolRollout,
  rolloutObjects,
  smallRollout,
} from '../support/rollout-page-objects.ts';
import { type RunningUi, startUi } from '../support/run-ui.ts';

const chromium = findChromium();
const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } };

describe.skipIf(requirement('the page of rollouts in a browser', chromium === null ? 'requires chromium' : null))('ui in a browser', () => {
  let browser: HeadlessBrowser;
  beforeAll(async () => {
    browser = await startBrowser(chromium as string);
  });
  afterAll(() => browser.close());

  /** Serves the page of these objects while a test runs. */
  async function withUi(objects: RolloutObjects, test: (ui: RunningUi, cluster: FakeCluster) => Promise<void>): Promise<void> {
    const cluster = fakeCluster({ objects: [NAMESPACE, ...objects.nodes, ...objects.revisions] });
    await cluster.create(rolloutDefinition());
    for (const rollout of objects.rollouts) {
      // Revisions name the UID of their rollout.
      const created = await cluster.create(rollout);
      const uid = created.metadata.uid ?? '';
      await cluster.patch(rolloutRef(created.metadata.name), 'merge', { status: rollout.status ?? {} }, { subresource: 'status' });
      for (const revision of objects.revisions.filter(
        ({ metadata }) => metadata.labels?.['kubeletadm.dev/rollout-name'] === created.metadata.name,
      )) {
        const [owner] = revision.metadata.ownerReferences as readonly Record<string, string>[];
        await cluster.update({ ...revision, metadata: { ...revision.metadata, ownerReferences: [{ ...owner, uid }] } });
      }
    }
    const ui = await startUi(cluster);
    try {
      await test(ui, cluster);
    } finally {
      expect(await ui.stop()).toBe(0);
    }
  }

  /** An API server that returns any object, also those that the API does not accept. */
  function hostileServer(objects: RolloutObjects): Cluster {
    const kinds = new Map([
      ['KubeletConfigRollout', objects.rollouts],
      ['Node', objects.nodes],
      ['ControllerRevision', objects.revisions],
    ]);
    return {
      ...fakeCluster(),
      list: async ({ kind }) => ({ items: kinds.get(kind) ?? [], resourceVersion: '1' }),
      get: async ({ kind, name }) => kinds.get(kind)?.find(({ metadata }) => metadata.name === name) ?? null,
    };
  }

  const text = (selector: string): Promise<unknown> => browser.evaluate(`document.querySelector('${selector}')?.textContent ?? ''`);
  const waitFor = (selector: string, expected: RegExp): Promise<void> =>
    expect.poll(() => text(selector), { timeout: 15_000 }).toMatch(expected);
  const click = (selector: string): Promise<unknown> => browser.evaluate(`document.querySelector('${selector}').click()`);
  const isOpen = (): Promise<unknown> => browser.evaluate("document.getElementById('action').open");
  const clickWhenEnabled = async (): Promise<void> => {
    await expect.poll(() => browser.evaluate("document.getElementById('action-confirm').disabled")).toBe(false);
    await click('#action-confirm');
  };

  it('follows a rollout of 3 nodes, and pauses, resumes, compares and undoes it', async () => {
    await withUi(smallRollout(), async (ui, cluster) => {
      await browser.open(ui.url, { width: 1_200, scheme: 'light' });
      await waitFor('#connection', /^Live/);
      expect(await text('.problems tbody tr')).toContain('edge-3');
      expect(await text('.problems tbody tr')).toContain('rolled back: the kubelet did not become Ready within 120 s');
      const cells = (): Promise<unknown> => browser.evaluate("[...document.querySelectorAll('.cell')].map((cell) => cell.className)");
      expect(await cells()).toEqual(['cell ok', 'cell active', 'cell error']);
      await cluster.patch(
        rolloutRef('edge'),
        'merge',
        {
          status: { counts: countsOf(3, { updated: 2, failed: 1 }), nodes: [{ name: 'edge-3', state: 'Failed', message: 'a new cause' }] },
        },
        { subresource: 'status' },
      );
      await waitFor('.problems tbody tr', /a new cause/);
      expect(await cells()).toEqual(['cell ok', 'cell ok', 'cell error']);

      await click('[data-action="pause"]');
      expect([await isOpen(), await text('#action-title')]).toEqual([true, 'Pause rollout edge?']);
      // Nothing happens without a confirmation.
      expect(await browser.evaluate('document.activeElement.id')).toBe('action-cancel');
      await click('#action-cancel');
      expect((await cluster.get(rolloutRef('edge')))?.spec).not.toMatchObject({ paused: true });
      await click('[data-action="pause"]');
      await click('#action-confirm');
      await waitFor('#action-done', /^rollout edge: paused$/);
      expect(await isOpen()).toBe(false);
      expect((await cluster.get(rolloutRef('edge')))?.spec).toMatchObject({ paused: true });
      await expect.poll(() => text('[data-action="resume"]'), { timeout: 15_000 }).toBe('Resume…');
      await click('[data-action="resume"]');
      await click('#action-confirm');
      await waitFor('#action-done', /resumed$/);

      await browser.evaluate("document.querySelector('[data-compare=\"revision\"]').value = '1'");
      await click('[data-action="diff"]');
      await waitFor('#action-fields', /maxPods: 110 → 200 safe/);
      expect(await text('#action-title')).toBe('edge: revision 1 → 3');
      await click('#action-cancel');
      await click('[data-action="undo"][data-revision="1"]');
      await waitFor('#action-fields', /maxPods: 200 → 110 new-pods-only/);
      expect((await cluster.get(rolloutRef('edge')))?.spec).toMatchObject({ payload: { overlay: { maxPods: 200 } } });
      await clickWhenEnabled();
      await waitFor('#action-done', /rolled back to revision 1$/);
      expect((await cluster.get(rolloutRef('edge')))?.spec).toMatchObject({ payload: { overlay: { maxPods: 110 } } });
    });
  });

  it('shows why an action has failed, and keeps the dialog open', async () => {
    await withUi(smallRollout(), async (ui, cluster) => {
      await browser.open(ui.url, { width: 600, scheme: 'dark' });
      cluster.failNext('patch', new Error('the API server is down'));
      await click('[data-action="pause"]');
      await click('#action-confirm');
      await waitFor('#action-problem', /^the API server is down$/);
      expect(await isOpen()).toBe(true);
      expect(await browser.evaluate(LOWEST_CONTRAST)).toMatchObject({ ratio: expect.toSatisfy((ratio: number) => ratio >= 4.5) });
      await clickWhenEnabled();
      await waitFor('#action-done', /paused$/);
    });
  });

  it.each(['light', 'dark'] as const)('is readable with 5,000 nodes, by keyboard: %s', async (scheme) => {
    await withUi(largeRollouts(), async (ui) => {
      await browser.open(ui.url, { width: 1_200, scheme });
      await waitFor('#connection', /^Live/);
      expect(await browser.evaluate("document.querySelectorAll('.cell').length")).toBe(4_800);
      expect(await text('.counts')).toMatch(/4800 nodes of rollouts.*3 failed.*3 unreachable.*20 in progress.*2478 pending.*2296 updated/s);
      expect(await text('.problems tbody tr')).toContain('edge-1700');
      expect(await browser.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      expect(await browser.evaluate(LOWEST_CONTRAST)).toMatchObject({ ratio: expect.toSatisfy((ratio: number) => ratio >= 4.5) });
      // Each grid is one stop of the Tab key.
      expect(await browser.evaluate('document.querySelectorAll(\'.cell[tabindex="0"]\').length')).toBe(3);
      const press = (key: string): Promise<unknown> =>
        browser.evaluate(`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '${key}', bubbles: true }))`);
      const shown = (): Promise<unknown> => text('[aria-labelledby="rollout-web"] .cell-text');
      await browser.evaluate("[...document.querySelectorAll('.grid')][2].querySelector('.cell').focus()");
      expect(await shown()).toBe('web-0000: updated, canary');
      await press('ArrowDown');
      expect(await shown()).toMatch(/^web-00[3-9]\d: pending$/);
      await press('End');
      expect(await shown()).toBe('web-0299: pending');
      expect(await text('[aria-labelledby="rollout-edge"] .cell-text')).toBe('');
    });
  });

  it('runs no code of names, messages and values', async () => {
    const markup = '<img src=x onerror="window.injected = 1"></script><script>window.injected = 1</script>';
    const name = `x"><b onmouseover=window.injected=1>{{html}}`;
    const message = `${markup}${HOSTILE}`;
    const listed = [
      { name: 'n1', state: 'Failed' as const, message },
      { name, state: 'Failed' as const, message: `${message}2` },
    ];
    const gate = {
      name: 'gate',
      batch: 1,
      state: 'Failed' as const,
      generation: 1,
      attempts: 1,
      startedAt: markup.slice(0, 40),
      answer: markup,
    };
    const revision = { updateRevision: markup, updateConfigMap: { namespace: 'a', name: markup, kubeletConfigKey: markup } };
    const status = { phase: 'Failed' as const, message, counts: countsOf(2, { failed: 2 }), nodes: listed, gates: [gate], ...revision };
    const [first, second] = poolRevisions('edge', [110, 200]);
    const payload = (clusterDomain: string) => ({ spec: { payload: { overlay: { clusterDomain } } } });
    const objects = rolloutObjects({
      rollouts: [poolRollout('edge', status)],
      nodes: [poolNode('n1', 'edge'), poolNode(name, 'edge')],
      revisions: [
        { ...first, data: payload(markup) },
        { ...second, data: payload(`${markup}2`) },
      ] as RolloutObjects['revisions'],
    });
    const ui = await startUi(hostileServer(objects));
    try {
      await browser.open(ui.url, { width: 1_200, scheme: 'light' });
      await waitFor('#connection', /^Live/);
      await browser.evaluate(
        "document.querySelectorAll('body *').forEach((element) => element.dispatchEvent(new MouseEvent('mouseover')))",
      );
      await click('[data-action="diff"]');
      await waitFor('#action-fields', /clusterDomain: <img src=x onerror="window\.injected/);
      expect(await text('.problems')).toContain('<img src=x onerror="window.injected = 1">');
      expect(await text('.grid')).toContain('{{html}}');
      expect(await browser.evaluate('window.injected ?? null')).toBeNull();
      expect(
        await browser.evaluate("[document.querySelectorAll('img, b[onmouseover]').length, document.querySelectorAll('script').length]"),
      ).toEqual([0, 2]);
      expect(await text('body')).not.toMatch(/[\u202e\u2066\u200b]/);
    } finally {
      await ui.stop();
    }
  });
});
