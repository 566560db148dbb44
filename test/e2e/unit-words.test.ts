import { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Host } from '../../src/host/access/host.ts';
import { observe } from '../../src/host/access/observe.ts';
import { combineFacts } from '../../src/host/facts/fact.ts';
import { operatingSystem } from '../../src/host/facts/operating-system.ts';
import { unitState } from '../../src/host/facts/unit.ts';
import { execStartWords } from '../../src/host/systemd/exec-start.ts';
import { observeUnitTexts } from '../../src/host/systemd/observe-unit-texts.ts';
import { createServices } from '../../src/wiring.ts';
import { flagsOf, readKubeletFlags } from '../support/kubelet-flags.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { requirement } from '../support/requirement.ts';

const missing = whyNoLabHosts();
const UNIT = '/etc/systemd/system/kubelet.service';
const dropIn = (name: string, directory = '/etc/systemd/system'): string => `${directory}/kubelet.service.d/${name}`;
const oneshot = (...lines: readonly string[]): string => `[Service]\nType=oneshot\n${lines.join('\n')}\n`;
const service = (...lines: readonly string[]): string => `[Service]\n${lines.join('\n')}\n`;
/** A kubelet that records the words it was started with. */
const RECORDER = '#!/usr/bin/python3\nimport json, sys\njson.dump(sys.argv[1:], open("/run/words.json", "w"))\n';

/** Files of a unit by path; those that a case does not name do not exist. */
const VARIANTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'no words': { [UNIT]: oneshot('ExecStart=/opt/bin/kubelet') },
  'quotes and escapes': { [UNIT]: oneshot(String.raw`ExecStart=/opt/bin/kubelet "a b" 'c "d"' e\x20f g\sh "i\"j" --x="k l"`) },
  'octal and unicode escapes': { [UNIT]: oneshot(String.raw`ExecStart=/opt/bin/kubelet \101 \u00e9 "t\tt"`) },
  'continued lines with a comment between': {
    [UNIT]: oneshot('ExecStart=/opt/bin/kubelet a \\', '# comment', '  b \\', '; comment', ' c'),
  },
  'variables as a word and inside a word': {
    [UNIT]: oneshot(
      'Environment="ARGS=--a  --b" ONE=1',
      'ExecStart=/opt/bin/kubelet $ARGS ${ARGS} --one=${ONE} --two=$ONE $UNSET ${UNSET}',
    ),
  },
  'dollars and percents': { [UNIT]: oneshot('ExecStart=/opt/bin/kubelet $$HOME a$$b 100%% %n %p %N --host=%H') },
  'quotes in a variable': { [UNIT]: oneshot(`Environment='ARGS=--a="b c" \\'d e\\''`, 'ExecStart=/opt/bin/kubelet $ARGS') },
  'environment files over Environment=': {
    [UNIT]: oneshot(
      'EnvironmentFile=/etc/default/own',
      'Environment=ARGS=--from-unit OTHER=--other',
      'ExecStart=/opt/bin/kubelet $ARGS $OTHER',
    ),
    '/etc/default/own': 'ARGS=--from-file\n',
  },
  'a later environment file wins': {
    [UNIT]: oneshot('EnvironmentFile=/etc/default/own', 'EnvironmentFile=-/etc/kubernetes/kubelet.env', 'ExecStart=/opt/bin/kubelet $ARGS'),
    '/etc/default/own': 'ARGS=--one\n',
    '/etc/kubernetes/kubelet.env': 'ARGS="--two --three=\\"4 5\\""\n',
  },
  'an absent optional environment file': { [UNIT]: oneshot('EnvironmentFile=-/etc/default/absent', 'ExecStart=/opt/bin/kubelet a $ARGS') },
  'syntax of environment files': {
    [UNIT]: oneshot('EnvironmentFile=/etc/default/own', 'ExecStart=/opt/bin/kubelet $A $B ${C} ${D} $E ${F} $G'),
    '/etc/default/own': `# comment\n; comment\nA='x y'\n B = z \nC="two\nlines"\nD=a\\\nb\nexport E=e\nF=f # no comment\nG="a"'b'\n`,
  },
  'a reset ExecStart': {
    [UNIT]: oneshot('ExecStart=/opt/bin/kubelet old'),
    [dropIn('20-own.conf')]: service('ExecStart=', 'ExecStart=/opt/bin/kubelet new'),
  },
  'drop-ins by name': {
    [UNIT]: oneshot('ExecStart=/opt/bin/kubelet $ARGS'),
    [dropIn('9-a.conf')]: service('Environment=ARGS=--nine'),
    [dropIn('40-b.conf')]: service('Environment=ARGS=--forty'),
    [dropIn('B.conf')]: service('Environment=ARGS=--upper'),
    [dropIn('not-read.txt')]: service('Environment=ARGS=--wrong'),
  },
  'a drop-in that masks one of the same name': {
    [UNIT]: oneshot('ExecStart=/opt/bin/kubelet $ARGS'),
    [dropIn('10-a.conf', '/usr/lib/systemd/system')]: service('Environment=ARGS=--usr'),
    [dropIn('10-a.conf')]: service('Environment=OTHER=--etc'),
  },
  'drop-ins of several directories': {
    [UNIT]: oneshot('ExecStart=/opt/bin/kubelet $ARGS $MORE'),
    [dropIn('30-z.conf', '/usr/lib/systemd/system')]: service('Environment=ARGS=--usr MORE=--more'),
    [dropIn('20-y.conf', '/run/systemd/system')]: service('Environment=ARGS=--run'),
    [dropIn('10-x.conf')]: service('Environment=ARGS=--etc'),
  },
  'an environment that a drop-in resets': {
    [UNIT]: oneshot('Environment=ARGS=--a MORE=--b', 'ExecStart=/opt/bin/kubelet $ARGS $MORE'),
    [dropIn('20-own.conf')]: service('Environment=', 'Environment=MORE=--c'),
  },
  'environment files that a drop-in resets': {
    [UNIT]: oneshot('EnvironmentFile=/etc/default/own', 'ExecStart=/opt/bin/kubelet $ARGS $MORE'),
    '/etc/default/own': 'ARGS=--a\nMORE=--b\n',
    '/etc/default/other': 'MORE=--c\n',
    [dropIn('20-own.conf')]: service('EnvironmentFile=', 'EnvironmentFile=/etc/default/other'),
  },
  'prefixes of the program': { [UNIT]: oneshot('ExecStart=-+/opt/bin/kubelet a') },
  'a program without variables': { [UNIT]: oneshot('Environment=ARGS=--a', 'ExecStart=:/opt/bin/kubelet $ARGS ${ARGS} $$') },
  'a name for the process': { [UNIT]: oneshot('ExecStart=@/opt/bin/kubelet shown a b') },
  'variables that begin a word': { [UNIT]: oneshot('Environment=A=--a', 'ExecStart=/opt/bin/kubelet $A-x x$A ${A}-x') },
  'another section and odd spaces': {
    [UNIT]: `[Unit]\nDescription=x\nEnvironment=ARGS=--wrong\n${oneshot('  Environment = ARGS=--a  ', 'ExecStart =   /opt/bin/kubelet   $ARGS   b  ')}`,
  },
  'kubeadm and its drop-in': {
    [UNIT]: oneshot('ExecStart=/opt/bin/kubelet'),
    [dropIn('10-kubeadm.conf')]: service(
      'Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"',
      'EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env',
      'EnvironmentFile=-/etc/default/own',
      'ExecStart=',
      'ExecStart=/opt/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS',
    ),
    '/var/lib/kubelet/kubeadm-flags.env': 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.5 --node-labels=a=b,c=d"\n',
    '/etc/default/own': "KUBELET_EXTRA_ARGS=--max-pods=50 '--eviction-hard=memory.available<5%'\n",
  },
};

describe.skipIf(requirement('the command lines of systemd', missing))('the command lines of systemd', () => {
  let lab: LabHosts;
  let host: Host;
  const write = (files: Readonly<Record<string, string>>): void => {
    const written = Object.entries(files).map(([path, text]) => {
      const content = Buffer.from(text).toString('base64');
      return `mkdir -p "$(dirname ${path})" && echo ${content} | base64 -d >${path}`;
    });
    const old = '/etc/systemd/system/kubelet.service* /usr/lib/systemd/system/kubelet.service.d /run/systemd/system/kubelet.service.d';
    lab.run('node1', [`rm -rf ${old} /etc/default/own /etc/default/other /etc/kubernetes /run/words.json`, ...written].join(' && '));
  };

  beforeAll(async () => {
    lab = startLabHosts(1);
    lab.run('node1', 'mkdir -p /opt/bin');
    lab.put('node1', '/opt/bin/kubelet', RECORDER);
    const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
    const { signal } = new AbortController();
    const io = { env: { PATH: process.env.PATH ?? '' }, stdin: Readable.from(['']), stdout: sink, stderr: sink, signal };
    host = await createServices(io).connectHost({ address: 'node1', ssh: { configFile: lab.sshConfig } });
  }, 900_000);
  afterAll(async () => {
    await host?.close();
    lab?.close();
  }, 120_000);

  it.each(Object.entries(VARIANTS))('are known before the start: %s', async (_, files) => {
    write(files);
    lab.run('node1', 'systemctl daemon-reload');
    const { unit, os } = await observe(host, combineFacts({ unit: unitState('kubelet'), os: operatingSystem }));
    const texts = await observeUnitTexts(host, unit);
    const words = execStartWords(texts?.unitFiles ?? [], texts?.environmentFiles ?? [], os.hostname)?.map(({ word }) => word);
    lab.run('node1', 'systemctl start kubelet');
    const started: unknown = JSON.parse(lab.run('node1', 'cat /run/words.json'));
    expect(words).toEqual(['/opt/bin/kubelet', ...(started as readonly string[])]);
  });

  const onHosts = readKubeletFlags().filter((one) => one.host !== false);
  it.each(onHosts.map((one) => [one.name, one] as const))('are those of config migrate --flags: %s', async (_, one) => {
    write({ ...one.files, [dropIn('99-test.conf')]: service('Type=oneshot', 'Restart=no') });
    lab.run('node1', 'systemctl daemon-reload && systemctl start kubelet');
    const { words, notes } = await flagsOf(one);
    expect(words.map(({ word }) => word)).toEqual(JSON.parse(lab.run('node1', 'cat /run/words.json')));
    const verified = lab.run('node1', 'systemd-analyze verify --man=no kubelet.service 2>&1 || true');
    // An unknown section is reported once, at its heading.
    const ignored = [...verified.matchAll(/^(\/\S+):([0-9]+): (Unknown (?:key|section)|Assignment outside)/gm)].map(
      ([, path, line, reason]) => `${path}:${Number(line) + (reason === 'Unknown section' ? 1 : 0)}`,
    );
    const ours = notes.flatMap(({ position: at }) => (at?.file.startsWith('/etc/systemd/') ? [`${at.file}:${at.line}`] : []));
    expect(ours.toSorted()).toEqual(ignored.toSorted());
  });
});
