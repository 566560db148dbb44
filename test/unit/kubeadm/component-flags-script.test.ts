import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const SCRIPT = path.join(import.meta.dirname, '..', '..', '..', 'scripts', 'component-flags.mjs');

/** A program that parses flags as pflag does: an integer, a deprecated and hidden string, a list of ports. */
const PROGRAM = `#!/bin/sh
case $1 in
  --help) printf '      --count int    Number\\n      --openshift-config string\\n      --ports range   DEPRECATED: ports\\n  -h, --help\\n' ;;
  --count=7|--count=-7|--hidden=*|--ports=7|--ports=7-9) case $1 in --hidden*) echo 'Flag --hidden has been deprecated, x' ;; esac ;;
  --count=*|--ports=*) echo "invalid argument for $1" >&2; exit 1 ;;
  *) echo "unknown flag: $1" >&2; exit 1 ;;
esac
`;

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'ka-component-flags-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function write(name: string, text: string, mode = 0o644): string {
  const file = path.join(directory, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text, { mode });
  return path.join(directory, name.split('/')[0] as string);
}

function run(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args, '--data', path.join(directory, 'data.json')], {
    encoding: 'utf8',
  });
  return { status, lines: `${stdout}${stderr}`.trim().split('\n') };
}

const data = () => readFileSync(path.join(directory, 'data.json'), 'utf8');

describe('scripts/component-flags.mjs', () => {
  it('asks programs for the types of their flags, and compares trees', () => {
    const now = write('now/pkg/a.go', 'pflag "count" "ports"\nfs.MarkHidden("hidden")\nfs.MarkDeprecated("gone")\n');
    const before = write('before/pkg/a.go', 'pflag "count" "hidden" "old"\n');
    for (const name of ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']) write(`bin/${name}`, PROGRAM, 0o755);
    expect(run('kubernetes', '1.36', '--tree', now, '--binaries', path.join(directory, 'bin'))).toEqual({ status: 0, lines: [''] });
    expect(run('kubernetes', '1.35', '--tree', before, '--like', now)).toEqual({
      status: 0,
      lines: [
        ...['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map(
          (name) => `${name}: --ports is not in the tree of this minor`,
        ),
        'names in this tree alone, which may be flags: old',
      ],
    });
    expect(data().split('\n').slice(0, 6)).toEqual([
      '{',
      '"kube-apiserver": { "minors": [35, 36], "flags": [',
      '{"flag":"count","type":"int"},',
      '{"flag":"hidden","type":"string","deprecatedSince":35},',
      '{"flag":"ports","type":"other","deprecatedSince":36,"minors":[36,36]}',
      ']},',
    ]);
  });

  it('reads the flags that a tree of etcd registers', () => {
    const main = `ignored = []string{\n\t"snapshot",\n\t// tests\n\t"test.outputdir",\n}\ndeprecatedFlags = map[string]string{\n\t"proxy": "x",\n\t}\nfs.Var(cfg.cf.proxy, "proxy", "")\n`;
    const embed =
      'const a = "x"\nfs.UintVar(&cfg.N, "max-wals", 1, "")\nfs.Var(\n\tflags.NewUniqueURLs(Default, ""),\n\t"listen-urls",\n)\n';
    write('etcd/server/etcdmain/config.go', main);
    const tree = write('etcd/server/embed/config.go', embed);
    expect(run('etcd', '3.6', '--tree', tree).status).toBe(0);
    write('etcd/server/etcdmain/config.go', main.replace(/deprecatedFlags[\s\S]*$/, ''));
    expect(run('etcd', '3.7', '--tree', tree).status).toBe(0);
    expect(data().split('\n')).toEqual([
      '{',
      '"etcd": { "minors": [6, 7], "flags": [',
      '{"flag":"listen-urls","type":"string"},',
      '{"flag":"max-wals","type":"uint"},',
      '{"flag":"proxy","type":"string","deprecatedSince":6,"minors":[6,6]},',
      '{"flag":"snapshot","type":"string"}',
      ']}',
      '}',
      '',
    ]);
  });

  it('refuses an incomplete command line', () => {
    expect(run('kubernetes', '1.36')).toEqual({
      status: 1,
      lines: ['component-flags: usage: component-flags.mjs kubernetes|etcd VERSION --tree DIR'],
    });
  });
});
