import { describe, expect, it } from 'vitest';
import { checkCorefile } from '../../../../src/kubeadm/addons/corefile.ts';

const DEFAULT = `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
`;

function plugins(lines: string): string {
  return `.:53 {\n${lines}\n}\n`;
}

describe('checkCorefile', () => {
  it("accepts kubeadm's own Corefile from every kubeadm since 1.23", () => {
    for (const from of ['v1.8.6', 'v1.9.3', 'v1.10.1', 'v1.11.1', 'v1.11.3', 'v1.12.0', 'v1.12.1', 'v1.13.1'])
      expect(checkCorefile(DEFAULT, { from, to: 'v1.14.2' }), from).toEqual({ issue: null, unsupported: [] });
  });

  it('accepts any Corefile if the version stays', () => {
    expect(checkCorefile(plugins('route53 example.org'), { from: 'v1.14.2', to: 'v1.14.2' })).toEqual({ issue: null, unsupported: [] });
    expect(checkCorefile('', { from: 'custom', to: 'custom' })).toEqual({ issue: null, unsupported: [] });
  });

  it.each([
    ['', 'no Deployment runs CoreDNS'],
    ['v1.2.6', 'CoreDNS 1.2.6 is not a known release'],
    ['latest', 'CoreDNS latest is not a known release'],
  ])('cannot upgrade from %j', (from, issue) => {
    expect(checkCorefile(DEFAULT, { from, to: 'v1.14.2' }).issue).toContain(issue);
  });

  it('cannot downgrade, nor go to an unknown release', () => {
    expect(checkCorefile(DEFAULT, { from: 'v1.14.2', to: 'v1.13.1' }).issue).toBe('CoreDNS 1.14.2 cannot be downgraded to 1.13.1');
    expect(checkCorefile(DEFAULT, { from: 'v1.14.2', to: 'v9.0.0' }).issue).toContain('the new CoreDNS 9.0.0 is not a known release');
  });

  it.each([
    ['an unknown plugin', '  route53 example.org', ['route53']],
    ['an unknown option', '  loadbalance {\n    prefer 10.0.0.0/8\n  }', ['loadbalance prefer']],
    ['an option that a later release dropped', '  forward . 10.0.0.1 {\n    fail_fast\n  }', ['forward fail_fast']],
    ['entries of hosts', '  hosts {\n    10.0.0.1 a.example\n    fd00::1 b.example\n    fallthrough\n  }', []],
    ['a name of an object in JavaScript', '  constructor\n  log {\n    toString\n  }', ['constructor', 'log toString']],
    ['comments and quotes', '  # route53\n  rewrite name "a b" c # route53\n  log', []],
    ['each finding once', '  route53 a\n  route53 b', ['route53']],
  ])('%s', (_, lines, unsupported) => {
    expect(checkCorefile(plugins(lines), { from: 'v1.11.4', to: 'v1.14.2' })).toEqual({ issue: null, unsupported });
  });

  it('requires an option in each release on the way', () => {
    const cache = plugins('  cache 30 {\n    disable success\n  }');
    expect(checkCorefile(cache, { from: 'v1.9.3', to: 'v1.14.2' }).unsupported).toEqual([]);
    expect(checkCorefile(cache, { from: 'v1.8.6', to: 'v1.14.2' }).unsupported).toEqual(['cache disable']);
  });

  it('reads all server blocks', () => {
    const text = `${DEFAULT}\nexample.org:53 {\n    errors\n    file db\n}\n`;
    expect(checkCorefile(text, { from: 'v1.13.1', to: 'v1.14.2' }).unsupported).toEqual(['file']);
  });
});
