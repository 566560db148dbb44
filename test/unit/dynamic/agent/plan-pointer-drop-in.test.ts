import { describe, expect, it } from 'vitest';
import { planPointerDropIn } from '../../../../src/dynamic/workflows/observe-dynamic-host.ts';
import { execStartWords, type UnitTexts } from '../../../../src/host/systemd/exec-start.ts';
import { POINTER_DROP_IN } from '../../../../src/kubelet/node-agent/agent-units.ts';
import { formatPointer, pointerFile } from '../../../../src/kubelet/node-agent/layout.ts';
import { loadTemplates } from '../../../../src/template-files.ts';

const templates = await loadTemplates();
const D = '/var/lib/kubelet/kubeletadm-agent';
const UNIT = { path: '/usr/lib/systemd/system/kubelet.service', text: '[Service]\nExecStart=/usr/bin/kubelet\n' };
const KUBEADM = {
  path: '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf',
  text: `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
};
const texts = (dropIns: UnitTexts['unitFiles'], environment: Readonly<Record<string, string>> = {}, unit = UNIT): UnitTexts => ({
  unitFiles: [unit, ...dropIns],
  environmentFiles: Object.entries(environment).map(([path, text]) => ({ path, text })),
});

describe('where the pointer is read', () => {
  it('is the variable of kubeadm, whose files stay', () => {
    const place = planPointerDropIn(templates, texts([KUBEADM], { '/etc/default/kubelet': 'KUBELET_EXTRA_ARGS=--node-ip=10.0.0.1\n' }), D);
    expect(place).toEqual({
      kind: 'drop-in',
      localConfig: '/var/lib/kubelet/config.yaml',
      text: expect.stringMatching(/^# .*\n\[Service\]\nEnvironmentFile=-\/var\/lib\/kubelet\/kubeletadm-agent\/active\.env\n$/),
    });
  });

  it('is the end of the command line if the unit has its own', () => {
    const unit = { ...UNIT, text: '[Service]\nExecStart=-/opt/bin/kubelet --config=/etc/kubelet.yaml \\\n  --v=2\n' };
    const place = planPointerDropIn(templates, texts([], {}, unit), D);
    expect(place).toMatchObject({ kind: 'drop-in', localConfig: '/etc/kubelet.yaml' });
    const text = place.kind === 'drop-in' ? place.text : '';
    expect(text).toMatch(/\nExecStart=\nExecStart=-\/opt\/bin\/kubelet --config=\/etc\/kubelet\.yaml +--v=2 \$KUBELET_CONFIG_ARGS\n$/);
    const files = [unit, { path: POINTER_DROP_IN, text }];
    const words = (pointer: string | null): readonly string[] =>
      (execStartWords(files, [{ path: pointerFile(D), text: pointer }]) ?? []).map(({ word }) => word);
    expect(words(null)).toEqual(['/opt/bin/kubelet', '--config=/etc/kubelet.yaml', '--v=2']);
    expect(words(formatPointer(D, 'a'.repeat(64))).at(-1)).toBe(`--config=${D}/checkpoints/${'a'.repeat(64)}/kubelet.yaml`);
  });

  it('is written the same in each release', () => {
    const unit = { ...UNIT, text: '[Service]\nExecStart=/opt/bin/kubelet --config=/etc/kubelet.yaml\n' };
    expect(planPointerDropIn(templates, texts([], {}, unit), D)).toMatchObject({
      text: `# Written by kubeletadm: which configuration the kubelet reads, where the agent says so.
[Service]
EnvironmentFile=-/var/lib/kubelet/kubeletadm-agent/active.env
ExecStart=
ExecStart=/opt/bin/kubelet --config=/etc/kubelet.yaml $KUBELET_CONFIG_ARGS
`,
    });
  });

  it('counts a drop-in of an earlier run for nothing', () => {
    const first = planPointerDropIn(templates, texts([KUBEADM]), D);
    const text = first.kind === 'drop-in' ? first.text : '';
    const second = texts([KUBEADM, { path: POINTER_DROP_IN, text }], { [pointerFile(D)]: formatPointer(D, 'b'.repeat(64)) });
    expect(planPointerDropIn(templates, second, D)).toEqual(first);
  });

  it('is at the end when the extra arguments of the host name a configuration', () => {
    const place = planPointerDropIn(
      templates,
      texts([KUBEADM], { '/etc/default/kubelet': 'KUBELET_EXTRA_ARGS="--config /etc/own.yaml"\n' }),
      D,
    );
    expect(place).toMatchObject({ kind: 'drop-in', localConfig: '/etc/own.yaml', text: expect.stringContaining('\nExecStart=\n') });
  });

  it.each([
    ['a kubelet without a file', texts([], {}), 'runs without --config'],
    ['no unit', texts([], {}, { ...UNIT, text: '' }), 'the unit kubelet.service does not exist'],
    [
      'a later drop-in with a command line of its own',
      texts([
        KUBEADM,
        {
          path: '/etc/systemd/system/kubelet.service.d/90-own.conf',
          text: '[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config=/x\n',
        },
      ]),
      '/etc/systemd/system/kubelet.service.d/90-own.conf sets --config, which overrides',
    ],
  ])('is nowhere with %s', (_, found, why) => {
    expect(planPointerDropIn(templates, found, D)).toMatchObject({ kind: 'impossible', why: expect.stringContaining(why) });
  });
});
