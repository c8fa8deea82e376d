package onceproof;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.IllegalClassFormatException;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.security.ProtectionDomain;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/**
 * Byteman's agent, which is shown only the classes that rules name.
 *
 * By itself it parses every class that is loaded, 14,000 in a driver, before it looks whether a rule names it. Argument:
 * the names, joined by "+", then ";" and the argument of Byteman's own agent. Written for Janino, which compiles it at
 * setup: a Java runtime has no compiler, but Spark brings this one.
 */
public final class NamedClasses implements ClassFileTransformer {
    private final ClassFileTransformer byteman;
    private final Set names;

    private NamedClasses(ClassFileTransformer byteman, Set names) {
        this.byteman = byteman;
        this.names = names;
    }

    public static void premain(String argument, final Instrumentation jvm) throws Exception {
        int end = argument.indexOf(';');
        final Set names = new HashSet(Arrays.asList(argument.substring(0, end).replace('.', '/').split("\\+")));
        InvocationHandler filter = new InvocationHandler() {
            public Object invoke(Object proxy, Method method, Object[] values) throws Throwable {
                if (method.getName().equals("addTransformer")) {
                    values[0] = new NamedClasses((ClassFileTransformer) values[0], names);
                }
                try {
                    return method.invoke(jvm, values);
                } catch (InvocationTargetException failure) {
                    throw failure.getCause();
                }
            }
        };
        Class[] type = new Class[] {Instrumentation.class};
        Object filtered = Proxy.newProxyInstance(NamedClasses.class.getClassLoader(), type, filter);
        org.jboss.byteman.agent.Main.premain(argument.substring(end + 1), (Instrumentation) filtered);
    }

    public byte[] transform(ClassLoader loader, String name, Class redefined, ProtectionDomain domain, byte[] bytes)
            throws IllegalClassFormatException {
        return names.contains(name) ? byteman.transform(loader, name, redefined, domain, bytes) : null;
    }
}
