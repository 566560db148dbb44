import { expect, it } from 'vitest';
import { configPathOf, observeHealthzUrl } from '../../../../src/kubelet/effective/healthz-url.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';

const UNIT = '/etc/systemd/system/kubelet.service';

it('reads the file of --config and the flags of healthz, wherever they are', async () => {
  const host = (port: string) =>
    fakeHost({
      files: {
        [UNIT]: `[Service]\nExecStart=/opt/bin/kubelet --config=/etc/own.yaml ${port}\n`,
        '/etc/own.yaml': 'healthzPort: 20248\n',
        '/var/lib/kubelet/config.yaml': 'healthzPort: 1\n',
      },
      commands: { sh: { exitCode: 3 } },
      units: { kubelet: fakeUnit({ fragmentPath: UNIT }) },
    });
  expect(await observeHealthzUrl({ host: host('') })).toBe('http://127.0.0.1:20248/healthz');
  expect(await observeHealthzUrl({ host: host('--healthz-port=30248') })).toBe('http://127.0.0.1:30248/healthz');
  expect(configPathOf([{ word: 'kubelet', source: '' }])).toBe('');
  expect(configPathOf([])).toBe('/var/lib/kubelet/config.yaml');
});
