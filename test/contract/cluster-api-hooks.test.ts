import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { hookAnswers } from '../../src/rollouts/cluster-api/hooks.ts';
import {
  canUpdateMachine,
  canUpdateMachineSet,
  HOOKS_API_VERSION,
  kubeadmConfigSpec,
  type ObjectOptions,
  patchedObject,
  patchFile,
} from '../support/cluster-api-objects.ts';
import { fakeCluster } from '../support/fake-cluster.ts';
import { virtualClock } from '../support/virtual-clock.ts';

const BASE = `/${HOOKS_API_VERSION}`;
const OLD =
  'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110\nevictionHard:\n  memory.available: 100Mi\n';

function answers(allow: 'safe' | 'new-pods-only' = 'new-pods-only') {
  const connectCluster = async (): Promise<never> => {
    throw new Error('no connection expected');
  };
  const ports = { management: fakeCluster(), connectCluster, clock: virtualClock(), reporter: { report: () => undefined } };
  return hookAnswers(ports, { allow, namespace: 'kubeletadm-system' });
}

async function responseTo(path: string, request: unknown, allow?: 'safe' | 'new-pods-only'): Promise<JsonObject> {
  const answer = await answers(allow)(path, request);
  if (answer === null || !('response' in answer)) throw new Error(`no response: ${JSON.stringify(answer)}`);
  return answer.response;
}

/** The two CanUpdate hooks, with the member of the response and the way to the spec. */
const HOOKS = [
  {
    hook: 'CanUpdateMachine',
    path: `${BASE}/canupdatemachine/can-update-machine`,
    request: canUpdateMachine,
    member: 'bootstrapConfig',
    patch: 'bootstrapConfigPatch',
  },
  {
    hook: 'CanUpdateMachineSet',
    path: `${BASE}/canupdatemachineset/can-update-machine-set`,
    request: canUpdateMachineSet,
    member: 'bootstrapConfigTemplate',
    patch: 'bootstrapConfigTemplatePatch',
  },
] as const;

describe('the discovery hook', () => {
  it('lists one handler for each hook, by the path that Cluster API calls', async () => {
    const request = { apiVersion: HOOKS_API_VERSION, kind: 'DiscoveryRequest' };
    const { handlers, ...response } = await responseTo(`${BASE}/discovery`, request);
    expect(response).toEqual({ apiVersion: HOOKS_API_VERSION, kind: 'DiscoveryResponse', status: 'Success' });
    const found = handlers as { name: string; requestHook: { apiVersion: string; hook: string }; timeoutSeconds: number }[];
    expect(found.map(({ requestHook }) => requestHook.hook)).toEqual(['CanUpdateMachine', 'CanUpdateMachineSet', 'UpdateMachine']);
    for (const { name, requestHook, timeoutSeconds } of found) {
      expect([requestHook.apiVersion, timeoutSeconds <= 30]).toEqual([HOOKS_API_VERSION, true]);
      // As validated by Cluster API: a DNS label.
      expect(name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
      const path = `${BASE}/${requestHook.hook.toLowerCase()}/${name}`;
      expect(await answers()(path, { apiVersion: HOOKS_API_VERSION, kind: `${requestHook.hook}Request` })).not.toBeNull();
    }
  });

  it.each([
    [`${BASE}/discovery`, { apiVersion: HOOKS_API_VERSION, kind: 'CanUpdateMachineRequest' }],
    [`${BASE}/discovery`, { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha2', kind: 'DiscoveryRequest' }],
    [`${BASE}/discovery`, null],
    [`${BASE}/updatemachine/update-machine`, [1]],
  ])('refuses what is no request of the hook: %s %j', async (path, request) => {
    expect(await answers()(path, request)).toEqual({ invalid: expect.stringContaining(HOOKS_API_VERSION) });
  });

  it.each([`${BASE}/Discovery`, `${BASE}/generatepatches/x`, `${BASE}/canupdatemachine`, '/'])('does not serve %s', async (path) => {
    expect(await answers()(path, {})).toBeNull();
  });
});

describe.each(HOOKS)('the hook $hook', ({ hook, path, request, member, patch }) => {
  /** The bootstrap configuration after the patch of the response, the one that was requested, and the message. */
  async function ask(
    current: JsonObject,
    desired: JsonObject,
    { allow, ...options }: ObjectOptions & { readonly allow?: 'safe' | 'new-pods-only' } = {},
  ) {
    const asked = request(current, desired, options) as Record<'current' | 'desired', Record<string, JsonObject>>;
    const { status, message, apiVersion, kind, ...patches } = await responseTo(path, asked, allow);
    expect({ status, apiVersion, kind }).toEqual({ status: 'Success', apiVersion: HOOKS_API_VERSION, kind: `${hook}Response` });
    const given = patches as Record<string, { patchType: string; patch: string }>;
    expect(Object.keys(given).filter((name) => name !== patch)).toEqual([]);
    return {
      message: message as string,
      isPatched: given[patch] !== undefined,
      patched: patchedObject(asked.current[member] as JsonObject, given[patch]),
      wanted: asked.desired[member],
    };
  }
  const withFile = (content: string, more: JsonObject = {}) => kubeadmConfigSpec([patchFile(content, more)]);

  it.each(['v1beta1', 'v1beta2'] as const)('covers permitted changes of a kubelet patch file, in %s', async (api) => {
    const [current, desired] = [OLD, OLD.replace('110', '200').replace('100Mi', '200Mi')].map((text) =>
      kubeadmConfigSpec([patchFile(text)], { api }),
    ) as [JsonObject, JsonObject];
    const { message, patched, wanted } = await ask(current, desired, { api });
    expect(message).toBe('covered: maxPods (safe), evictionHard[memory.available] (new-pods-only)');
    expect(patched).toEqual(wanted);
  });

  it('covers changes of several files, of which the last one wins', async () => {
    const files = (first: number, second: number) =>
      kubeadmConfigSpec([
        { path: '/etc/kubernetes/patches/kubeletconfiguration1+merge.json', content: JSON.stringify({ maxPods: second }) },
        { path: '/etc/kubernetes/patches/kubeletconfiguration0.yaml', content: `maxPods: ${first}\ncontainerLogMaxFiles: 5\n` },
      ]);
    const { message, patched, wanted } = await ask(files(10, 110), files(20, 120));
    expect([message, patched]).toEqual(['covered: maxPods (safe)', wanted]);
  });

  it('covers a change of comments', async () => {
    const { message, patched, wanted } = await ask(withFile(OLD), withFile(`# comment\n${OLD}`));
    expect([message, patched]).toEqual(['covered: no change', wanted]);
  });

  it('returns no patch for equal configurations', async () => {
    expect(await ask(withFile(OLD), withFile(OLD))).toMatchObject({ isPatched: false, message: 'covered: no change' });
  });

  it.each<[string, string, string, RegExp]>([
    ['of a class above --allow', OLD, `${OLD}topologyManagerPolicy: best-effort\n`, /not covered: topologyManagerPolicy: (drain|unsafe)$/],
    ['of a dangerous field', OLD, `${OLD}staticPodURL: https://x\n`, /staticPodURL: unsafe/],
    ['that removes a field', OLD, OLD.replace('maxPods: 110\n', ''), /maxPods: removed/],
    ['that removes a member of a map', `${OLD}  nodefs.available: 5%\n`, OLD, /evictionHard\[nodefs.available\]: removed/],
    ['to an unknown field', OLD, `${OLD}maxPod: 3\n`, /maxPod: /],
    ['to a wrong type', OLD, OLD.replace('110', 'many'), /maxPods: /],
    ['that no kubelet accepts', OLD, OLD.replace('110', '-5'), /maxPods/],
    ['with null', OLD, `${OLD}imageGCHighThresholdPercent: null\n`, /null values and directives/],
    ['with a directive', OLD, `${OLD}$patch: replace\n`, /null values and directives/],
    ['of the kind', OLD, OLD.replace('KubeletConfiguration', 'Other'), /apiVersion or kind/],
    ['to text that is no YAML', OLD, 'a: [\n', /desired kubelet patches/],
  ])('covers no change %s', async (_, before, after, why) => {
    const { message, isPatched } = await ask(withFile(before), withFile(after));
    expect([isPatched, message]).toEqual([false, expect.stringMatching(why)]);
  });

  it('names each field that is not covered, and no value', async () => {
    const desired = OLD.replace('maxPods: 110\n', 'staticPodURL: https://user:hunter2@x\ncpuManagerPolicy: static\n');
    const { message } = await ask(withFile(OLD), withFile(desired));
    expect(message).toMatch(/maxPods: removed.*staticPodURL: unsafe.*cpuManagerPolicy: (drain|unsafe)/);
    expect(message).not.toContain('hunter2');
  });

  it.each<[string, JsonObject, RegExp]>([
    ['an encoding', { encoding: 'base64' }, /because of encoding/],
    ['append', { append: true }, /because of append/],
    ['a template', { contentFormat: 'Template' }, /because of contentFormat/],
    ['a Secret', { contentFrom: { secret: { name: 's', key: 'k' } } }, /because of contentFrom/],
    ['a field of a later version', { verbatim: false }, /because of verbatim/],
    ['a JSON patch', { path: '/etc/kubernetes/patches/kubeletconfiguration+json.yaml' }, /JSON patch/],
    ['an invalid name', { path: '/etc/kubernetes/patches/kubeletconfiguration+x.yaml' }, /patch type/],
  ])('covers no file with %s', async (_, more, why) => {
    const { message, isPatched } = await ask(withFile(OLD, more), withFile(OLD.replace('110', '120'), more));
    expect([isPatched, message]).toEqual([false, expect.stringMatching(why)]);
  });

  it.each<[string, (spec: JsonObject) => JsonObject, RegExp]>([
    [
      'a command changes files of the directory',
      (spec) => ({ ...spec, preKubeadmCommands: ['sed -i s/a/b/ /etc/kubernetes/patches/*'] }),
      /a command names the patch directory/,
    ],
    [
      'there are two directories',
      (spec) => ({ ...spec, initConfiguration: { patches: { directory: '/etc/other' } } }),
      /different patch directories/,
    ],
    ['a file is there twice', (spec) => ({ ...spec, files: [...(spec.files as []), patchFile(OLD)] }), /defined twice/],
    [
      'a file is there twice by another path',
      (spec) => ({ ...spec, files: [...(spec.files as []), patchFile(OLD, { path: PATH_OF_SAME_FILE })] }),
      /defined twice/,
    ],
  ])('covers nothing if %s', async (_, change, why) => {
    const { message, isPatched } = await ask(change(withFile(OLD)), change(withFile(OLD.replace('110', '120'))));
    expect([isPatched, message]).toEqual([false, expect.stringMatching(why)]);
  });

  it('covers no added, removed or moved file', async () => {
    const other = { path: '/etc/kubernetes/patches/kubeletconfiguration9.yaml', content: 'maxPods: 120\n' };
    const [one, two] = [withFile(OLD), kubeadmConfigSpec([patchFile(OLD), other])];
    const moved = kubeadmConfigSpec([other, patchFile(OLD)]);
    for (const [current, desired] of [
      [one, two],
      [two, one],
      [two, moved],
    ] as const)
      expect(await ask(current, desired)).toMatchObject({ isPatched: false, message: expect.stringContaining('added, removed or moved') });
  });

  it('leaves all other differences, so that Cluster API replaces the machines', async () => {
    const desired = {
      ...withFile(OLD.replace('110', '120')),
      preKubeadmCommands: ['true'],
      joinConfiguration: { patches: { directory: '/etc/kubernetes/patches' } },
    };
    const { patched, wanted } = await ask(withFile(OLD), desired);
    expect(patched).not.toEqual(wanted);
    expect(JSON.stringify(patched)).toContain('hostnamectl set-hostname node');
  });

  it('does not take files of another directory for patches', async () => {
    const path = '/etc/kubernetes/other/kubeletconfiguration.yaml';
    const { isPatched } = await ask(withFile(OLD, { path }), withFile(OLD.replace('110', '120'), { path }));
    expect(isPatched).toBe(false);
  });

  it.each([undefined, '', 'v1.23.4', 'v1.99.0', 'v2.0.0'])('covers nothing for version %s', async (version) => {
    const asked = request(withFile(OLD), withFile(OLD.replace('110', '120')), version === undefined ? {} : { version }) as JsonObject;
    const text = version === undefined ? JSON.stringify(asked).replaceAll('"version":"v1.36.2",', '') : JSON.stringify(asked);
    const response = await responseTo(path, JSON.parse(text));
    expect(response).toEqual({
      apiVersion: HOOKS_API_VERSION,
      kind: `${hook}Response`,
      status: 'Success',
      message: expect.stringMatching(/^not covered: the version/),
    });
  });

  it('decides by the version of the machine: a field of a later kubelet is not covered', async () => {
    const change = [withFile(OLD), withFile(`${OLD}imageMaximumGCAge: 24h\n`)] as const;
    expect([await ask(...change, { version: 'v1.28.0' }), await ask(...change)].map(({ isPatched }) => isPatched)).toEqual([false, true]);
  });

  it('covers only safe changes with --allow safe', async () => {
    const raised = await ask(withFile(OLD), withFile(OLD.replace('110', '120')), { allow: 'safe' });
    const lowered = await ask(withFile(OLD), withFile(OLD.replace('110', '100')), { allow: 'safe' });
    expect([raised.isPatched, lowered.isPatched, lowered.message]).toEqual([true, false, 'not covered: maxPods: new-pods-only']);
  });

  it('takes the highest class of a field that was not set: the value of the node is not known', async () => {
    const { message } = await ask(withFile('{}'), withFile('maxPods: 250'), { allow: 'safe' });
    expect(message).toBe('not covered: maxPods: new-pods-only');
  });

  it('covers nothing of a request with changed versions', async () => {
    const asked = request(withFile(OLD), withFile(OLD.replace('110', '120')));
    const desired = JSON.parse(JSON.stringify(asked.desired).replace('v1.36.2', 'v1.37.0'));
    const response = await responseTo(path, { ...asked, desired });
    expect([response[patch], response.message]).toEqual([undefined, expect.stringContaining('version')]);
  });

  it.each<[string, (objects: JsonObject) => JsonObject]>([
    ['no bootstrap configuration', ({ [member]: _, ...objects }) => objects],
    ['null as the bootstrap configuration', (objects) => ({ ...objects, [member]: null })],
    [
      'another bootstrap provider',
      (objects) => ({
        ...objects,
        [member]: { ...(objects[member] as JsonObject), apiVersion: 'bootstrap.cluster.x-k8s.io/v1beta2', kind: 'K0sWorkerConfig' },
      }),
    ],
    [
      'another API group',
      (objects) => ({ ...objects, [member]: { ...(objects[member] as JsonObject), apiVersion: 'bootstrap.example.com/v1beta2' } }),
    ],
    [
      'a later API version',
      (objects) => ({ ...objects, [member]: { ...(objects[member] as JsonObject), apiVersion: 'bootstrap.cluster.x-k8s.io/v1' } }),
    ],
    ['no spec', (objects) => ({ ...objects, [member]: { ...(objects[member] as JsonObject), spec: null } })],
  ])('covers nothing of a request with %s', async (_, change) => {
    const asked = request(withFile(OLD), withFile(OLD.replace('110', '120')));
    const response = await responseTo(path, {
      ...asked,
      current: change(asked.current as JsonObject),
      desired: change(asked.desired as JsonObject),
    });
    expect(response).toMatchObject({ status: 'Success', message: expect.stringMatching(/^not covered: /) });
    expect(response[patch]).toBeUndefined();
  });

  it('ignores unknown fields of all objects', async () => {
    const asked = request(withFile(OLD), withFile(OLD.replace('110', '120'))) as Record<string, Record<string, JsonObject>>;
    const more = (objects: Record<string, JsonObject> = {}) =>
      Object.fromEntries(Object.entries(objects).map(([name, object]) => [name, { ...object, status: {}, later: [1] }]));
    const response = await responseTo(path, { ...asked, later: true, current: more(asked.current), desired: more(asked.desired) });
    expect(response[patch]).toMatchObject({ patchType: 'JSONPatch' });
  });
});

const PATH_OF_SAME_FILE = '/etc//kubernetes/x/../patches/./kubeletconfiguration.yaml';
